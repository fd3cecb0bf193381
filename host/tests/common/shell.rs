//! Limits and signals that a shell sets for a command.

use std::process::Command;

/// A command for which a shell applies settings first.
pub fn under(settings: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!(r#"{settings} && exec "$0" "$@""#)]);
    shell.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(key, value),
            None => shell.env_remove(key),
        };
    }
    shell
}
