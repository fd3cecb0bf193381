//! The memory that this process may still take, by the system and by its limits.

use std::{fs, path::Path};

/// Bytes that this process may still take, and bytes in all. `u64::MAX` if the system does not say.
///
/// The first is the least of four: memory that is available without swapping (`MemAvailable`), and
/// the rest of the limits on address space (`ulimit -v`), on data (`ulimit -d`), and of the control
/// groups (a container's limit, version 1 or 2).
pub(crate) fn available() -> (u64, u64) {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (limits, status) = (read("/proc/self/limits"), read("/proc/self/status"));
    let memory = read("/proc/meminfo");
    let of_system = kib(&memory, "MemAvailable:").unwrap_or(u64::MAX);
    let left =
        [("Max address space", "VmSize:"), ("Max data size", "VmData:")].map(|(limit, used)| {
            let used = kib(&status, used).unwrap_or(0);
            soft_limit(&limits, limit).map_or(u64::MAX, |limit| limit.saturating_sub(used))
        });
    let (of_groups, most) = of_groups(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup"));
    let free = left.into_iter().fold(of_system.min(of_groups), u64::min);
    (free, kib(&memory, "MemTotal:").unwrap_or(u64::MAX).min(most))
}

/// A line `NAME 123 kB` in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok()?.checked_mul(1024)
}

/// A limit in `/proc/self/limits`: name, soft limit, hard limit, unit. `None` for an unlimited one.
fn soft_limit(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// The memory that the limits of this process's control groups leave, and the smallest limit.
/// `root`: the folder of the groups. `groups`: the text of `/proc/self/cgroup`.
fn of_groups(root: &Path, groups: &str) -> (u64, u64) {
    // Version 2 has one line, `0::PATH`. Version 1 has a line for each controller, `8:memory:PATH`,
    // and each has its own folder.
    let paths = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        match controllers {
            "" => Some((root.to_owned(), path, ["memory.max", "memory.current"])),
            _ if controllers.split(',').any(|one| one == "memory") => {
                let files = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
                Some((root.join("memory"), path, files))
            }
            _ => None,
        }
    });
    let mut found = (u64::MAX, u64::MAX);
    for (root, path, [limit, used]) in paths {
        // A group's limit holds for the groups in it, too. (A container sees its own group as the
        // root, under another path.)
        for group in root.join(path).ancestors().take_while(|group| group.starts_with(&root)) {
            let number = |file: &str| -> Option<u64> {
                fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()
            };
            // `max` in version 2 is no number.
            let Some(limit) = number(limit) else { continue };
            let used = number(used).unwrap_or(0).saturating_sub(reclaimable(group));
            found = (found.0.min(limit.saturating_sub(used)), found.1.min(limit));
        }
    }
    found
}

/// Bytes of cached files of a group, which the system drops before it refuses memory.
fn reclaimable(group: &Path) -> u64 {
    let text = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let number =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    number("total_inactive_file ").or_else(|| number("inactive_file ")).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_from_its_line() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max data size             unlimited            unlimited            bytes     \n\
                    Max address space         1048576              unlimited            bytes     \n";
        assert_eq!(soft_limit(text, "Max address space"), Some(1 << 20));
        assert_eq!(soft_limit(text, "Max data size"), None);
        assert_eq!(soft_limit(text, "Max stack size"), None);
        assert_eq!(kib("MemTotal:       25 kB\nMemFree: 1 kB\n", "MemTotal:"), Some(25 * 1024));
    }

    /// Folders of groups: path, limit file and its text, usage file and its text, `memory.stat`.
    fn groups(all: &[(&str, [(&str, &str); 3])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, files) in all {
            let group = root.path().join(path);
            fs::create_dir_all(&group).unwrap();
            files.iter().for_each(|(file, text)| fs::write(group.join(file), text).unwrap());
        }
        root
    }

    #[test]
    fn the_closest_limit_of_a_group_and_those_around_it_counts() {
        let two = |limit, used| {
            [
                ("memory.max", limit),
                ("memory.current", used),
                ("memory.stat", "inactive_file 100\n"),
            ]
        };
        let root = groups(&[("a/b", two("max\n", "700\n")), ("a", two("1000\n", "900\n"))]);
        assert_eq!(of_groups(root.path(), "0::/a/b\n"), (200, 1000));
        let root = groups(&[("a/b", two("500\n", "450\n")), ("a", two("1000\n", "900\n"))]);
        assert_eq!(of_groups(root.path(), "0::/a/b\n"), (150, 500));
        // In a container the path is another than the one outside, and its own group is the root.
        let root = groups(&[(".", two("3000\n", "1100\n"))]);
        assert_eq!(of_groups(root.path(), "0::/docker/123\n"), (2000, 3000));
        assert_eq!(of_groups(root.path(), "0::/\n"), (2000, 3000));
        assert_eq!(of_groups(root.path(), ""), (u64::MAX, u64::MAX));
    }

    #[test]
    fn groups_of_the_first_version_lie_in_a_folder_of_their_own() {
        let files = [
            ("memory.limit_in_bytes", "4096\n"),
            ("memory.usage_in_bytes", "1096\n"),
            ("memory.stat", "inactive_file 1\ntotal_inactive_file 96\n"),
        ];
        let root = groups(&[("memory/jobs/one", files)]);
        let text = "9:name=systemd:/\n4:cpu,memory:/jobs/one\n0::/\n";
        assert_eq!(of_groups(root.path(), text), (3096, 4096));
    }

    #[test]
    fn this_process_may_take_some_memory() {
        let (free, total) = available();
        assert!(0 < free && 0 < total, "{free} of {total}");
    }
}
