//! The course's examples on paper: tiles of 2 x 2, four threads in a block.

use gpu::registry::TOY;

use super::*;

fn toy(m: u64, n: u64, k: u64, block: [u32; 2]) -> Vec<Phase> {
    let seen = of_block(&TOY, Shape::new(m, n, k).unwrap(), block, 1).unwrap();
    assert!(seen.findings.is_empty(), "{:?}", seen.findings);
    assert_eq!(seen.left_out, 0);
    assert_eq!(seen.barriers as u64, 2 * k.div_ceil(2), "two barriers a phase");
    seen.phases
}

/// The loads, adds and stores of a thread in a phase, as they are printed.
fn row(
    phases: &[Phase],
    phase: usize,
    thread: [u32; 2],
) -> (Vec<String>, Vec<String>, Vec<String>) {
    let row = phases[phase].threads.iter().find(|row| row.thread == thread).unwrap();
    assert_eq!(row.other_adds, 0);
    (
        row.loads.iter().map(Load::to_string).collect(),
        row.adds.iter().map(Product::to_string).collect(),
        row.stores.iter().map(Elements::to_string).collect(),
    )
}

/// Matrices of 4 x 4: in each phase a thread loads one element of A and one of B, and uses two of
/// each.
#[test]
fn the_phases_of_the_toy_example() {
    let phases = toy(4, 4, 4, [0, 0]);
    assert_eq!(phases.len(), 2);
    for (phase, phase_first) in [(0, 0), (1, 2)] {
        assert_eq!(phases[phase].threads.len(), 4);
        for (r, c) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (loads, adds, stores) = row(&phases, phase, [r, c]);
            let (a_col, b_row) = (phase_first + c, phase_first + r);
            assert_eq!(
                loads,
                [
                    format!("A[{r},{a_col}] -> tile_a[{r},{c}]"),
                    format!("B[{b_row},{c}] -> tile_b[{r},{c}]"),
                ]
            );
            let expected = [0, 1].map(|i| format!("tile_a[{r},{i}] tile_b[{i},{c}]"));
            assert_eq!(adds, expected);
            let expected: &[String] = if phase == 1 { &[format!("C[{r},{c}]")] } else { &[] };
            assert_eq!(stores, expected);
        }
    }
}

/// Matrices of 3 x 3, and a thread that computes a valid element of C. In the last phase it would
/// load a row of B that does not exist, and takes zero.
#[test]
fn a_thread_with_a_valid_element_loads_zero_outside() {
    let phases = toy(3, 3, 3, [0, 0]);
    let (loads, adds, stores) = row(&phases, 1, [1, 0]);
    assert_eq!(loads, ["A[1,2] -> tile_a[1,0]", "0 -> tile_b[1,0]"]);
    assert_eq!((adds.len(), &*stores), (2, &["C[1,0]".to_owned()][..]));
    // In the last phase three of the four threads take zero, for A, for B or for both. In the first
    // phase none does.
    let zeros = |phase: usize| {
        let rows = phases[phase].threads.iter();
        rows.map(|row| row.loads.iter().filter(|load| load.from == Origin::Zero).count())
            .collect::<Vec<_>>()
    };
    assert_eq!((zeros(0), zeros(1)), (vec![0; 4], vec![0, 1, 1, 2]));
}

/// A thread that computes no element of C still loads elements for the others of its block. It
/// stores nothing.
#[test]
fn a_thread_without_an_element_of_c_loads_and_does_not_store() {
    let phases = toy(3, 3, 3, [1, 1]);
    let (loads, _, stores) = row(&phases, 0, [1, 0]);
    assert_eq!(loads, ["0 -> tile_a[1,0]", "B[1,2] -> tile_b[1,0]"]);
    assert!(stores.is_empty(), "{stores:?}");
    let (loads, _, stores) = row(&phases, 0, [0, 1]);
    assert_eq!(loads, ["A[2,1] -> tile_a[0,1]", "0 -> tile_b[0,1]"]);
    assert!(stores.is_empty(), "{stores:?}");
    // One of the four stores, at the end.
    let stores = |phase: usize| phases[phase].threads.iter().flat_map(|row| &row.stores).count();
    assert_eq!([stores(0), stores(1)], [0, 1]);
    assert_eq!(row(&phases, 1, [0, 0]).2, ["C[2,2]"]);
}

#[test]
fn a_kernel_without_shared_memory_has_one_phase() {
    let basic = gpu_gemm::product::find("basic").unwrap();
    let seen = of_block(basic, Shape::new(2, 2, 2).unwrap(), [0, 0], 1).unwrap();
    let (loads, adds, stores) = row(&seen.phases, 0, [0, 1]);
    assert_eq!((seen.phases.len(), seen.barriers, loads.len()), (1, 0, 0));
    assert_eq!(adds, ["A[0,0] B[0,1]", "A[0,1] B[1,1]"]);
    assert_eq!(stores, ["C[0,1]"]);
}

#[test]
fn every_rung_can_be_traced() {
    for (entry, _) in gpu::registry::ladder() {
        let shape = Shape::new(5, 7, 6).unwrap();
        let seen = of_block(entry, shape, [0, 0], 1).unwrap();
        assert!(seen.findings.is_empty(), "{}: {:?}", entry.name(), seen.findings);
        let stores =
            seen.phases.iter().flat_map(|phase| &phase.threads).flat_map(|row| &row.stores);
        let stored: usize = stores.map(|elements| elements.count).sum();
        assert_eq!(stored, shape.c_len(), "{}: each element of C once", entry.name());
    }
}

#[test]
fn a_block_outside_the_grid_is_refused() {
    let error = of_block(&TOY, Shape::new(3, 5, 1).unwrap(), [3, 0], 1).unwrap_err().to_string();
    assert_eq!(error, "block = 3,0: the grid has 3 x 2 blocks, counted from 0,0");
    assert!(of_block(&TOY, Shape::new(0, 5, 1).unwrap(), [0, 0], 1).is_err());
}

#[test]
fn an_array_has_the_name_of_its_variable() {
    assert_eq!(name_in("    let mut tile = shared![f32; 2, 2];", 20).unwrap(), "tile");
    let both = "    let (ring, mut tiles) = (pipeline![4], dynamic_shared![Bf16]);";
    let column = |word| both.find(word).unwrap() as u32 + 1;
    assert_eq!(name_in(both, column("pipeline")).unwrap(), "ring");
    assert_eq!(name_in(both, column("dynamic")).unwrap(), "tiles");
    assert_eq!(name_in("f(shared![f32; 2])", 3), None);
}
