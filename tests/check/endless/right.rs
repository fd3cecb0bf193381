//! Correct kernels that wait and poll. x is 0, 1, 2 and so on. After its results a kernel may use y
//! freely. Correct specimens run here, too.

mod blocks;
mod clusters;
mod flags;
mod kernel;
mod mbarriers;

use simt::{
    Declaration, LaunchConfig,
    check::{Options, Report},
};
use specimens::list::{SPECIMENS, Specimen};

use self::kernel::Right;
use super::launches::{Checked, MOST_WAITS, Memory, each, orders};

/// A test for each module: correct kernels have no findings and right results, in every order and
/// with every number of workers.
macro_rules! tests {
    ($($name:ident: $module:ident)*) => {$(
        #[test]
        fn $name() {
            for Right { kernel, results, expected } in $module::ALL {
                each(*kernel, MOST_WAITS, orders(), |name, report, y| {
                    assert!(report.is_clean(), "{name}: {report}");
                    for (i, &got) in y[..*results].iter().enumerate() {
                        assert_eq!(got, expected(i), "{name}: element {i}");
                    }
                });
            }
        }
    )*};
}

tests! {
    barriers_and_warps: blocks
    blocks_of_a_cluster: clusters
    phases_and_copies: mbarriers
    flags_of_the_grid: flags
}

/// A specimen has memory of its own, and its own grid.
impl Checked for Specimen {
    fn declaration(&self) -> &Declaration {
        self.declaration()
    }

    fn check(&self, _: &LaunchConfig, memory: &mut Memory, options: &Options) -> Report {
        let mut y = self.y();
        let report = self.check(&self.x(), &mut y, options).expect("a report");
        memory.y.0.iter_mut().zip(y).for_each(|(to, value)| *to = value);
        report
    }
}

fn specimens() -> impl Iterator<Item = &'static Specimen> {
    SPECIMENS.iter().filter(|specimen| specimen.finds.is_empty())
}

#[test]
fn correct_specimens() {
    for specimen in specimens() {
        let mut expected = specimen.y();
        // SAFETY: the test of the specimens says that it is clean.
        unsafe { specimen.run(&specimen.x(), &mut expected) }.expect("it runs");
        each(specimen, MOST_WAITS, orders(), |name, report, y| {
            assert!(report.is_clean(), "{name}: {report}");
            assert!(y.iter().zip(&expected).all(|(got, want)| got == want), "{name}");
        });
    }
}

/// The number of kernels.
pub(super) fn count() -> usize {
    let own = [blocks::ALL, clusters::ALL, mbarriers::ALL, flags::ALL];
    own.iter().map(|all| all.len()).sum::<usize>() + specimens().count()
}
