//! Every kernel of the registry is right, and not by luck.

use std::{collections::HashSet, fs, path::Path};

use gpu::{
    params::GemmParams,
    registry::{Entry, KERNELS, PointerParams, Product, designs, source},
};
use host::{Device, Matrix, Shape, operands};
use simt::{
    Bound, Constants, Elements, LaunchConfig, Named,
    check::{Finding, Memory, Options},
};
use tests::{Turns, everything, products, reference, scratch::workspace};

/// A single element, sizes that no tile divides, several tiles along each dimension and along one
/// only, and an empty product.
const SIZES: [[u64; 3]; 13] = [
    [1, 1, 1],
    [17, 33, 5],
    [40, 70, 51],
    [33, 17, 49],
    [70, 40, 33],
    [1, 67, 35],
    [67, 1, 35],
    [32, 64, 32],
    [18, 35, 0],
    [150, 200, 100],
    [15, 9, 700],
    [129, 258, 9],
    [132, 260, 20],
];

/// In every order C is exact, and no thread makes a wrong access or leaves out a necessary one. By
/// default a kernel runs each order with one size.
#[test]
fn every_kernel_is_clean_and_right_in_every_order() {
    let device = Device::cpu();
    let orders = host::check::orders(12, 1);
    let mut turns = vec![Turns::of(orders.len()); products().len()];
    let mut checked = 0;
    for [m, n, k] in SIZES {
        let shape = Shape::new(m, n, k).unwrap();
        let a = operands::integers(m, shape.a_len(), 8).unwrap();
        let b = operands::integers(n, shape.b_len(), 8).unwrap();
        let expected = reference::product(shape, &a, &b);
        let a = Matrix::from_row_major(&device, shape.m(), shape.k(), &a).unwrap();
        let b = Matrix::from_row_major(&device, shape.k(), shape.n(), &b).unwrap();
        for ((entry, _), turns) in products().into_iter().zip(&mut turns) {
            for order in turns.next_case().into_iter().map(|number| orders[number]) {
                let name = format!("{}, {shape}, order {order}", entry.name());
                let mut c = Matrix::zeros(&device, shape.m(), shape.n()).unwrap();
                c.buffer_mut().fill_bytes(0xff).unwrap();
                let watched = host::check::multiply(entry, &a, &b, &mut c, order).unwrap();
                let findings = watched.findings;
                assert!(findings.is_empty(), "{name}: {findings:#?}");
                let c = c.to_row_major().unwrap();
                assert!(c.iter().map(|&x| f64::from(x)).eq(expected.iter().copied()), "{name}");
                checked += 1;
            }
        }
    }
    turns.iter().for_each(Turns::each_had_one);
    let each = if everything() { orders.len() } else { 1 };
    assert_eq!(checked, SIZES.len() * products().len() * each);
}

/// Each combination of constants is a kernel of the registry, or follows from a launch's operands.
/// So running all kernels, and those of any strides in each layout, runs them all.
#[test]
fn every_combination_of_constants_is_a_kernel() {
    let mut has_constants = false;
    for design in designs() {
        let declaration = design.declaration();
        let values = |constants: &Constants| {
            let constants = declaration.resolve(constants).unwrap();
            constants.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        let mut all = declaration.specialisations().iter().map(values).collect::<Vec<_>>();
        let of_it = KERNELS.iter().filter(|entry| entry.declaration() == declaration);
        let known = of_it.flat_map(|entry| entry.specialisations());
        let mut known = known.map(|constants| values(&constants)).collect::<Vec<_>>();
        all.sort();
        known.sort();
        assert_eq!(all, known, "{}", declaration.name);
        has_constants |= all.len() > 1;
    }
    assert!(has_constants, "some design has constants");
    let names = KERNELS.iter().map(Entry::name).collect::<HashSet<_>>();
    assert_eq!(names.len(), KERNELS.len(), "two kernels of one name");
}

#[test]
fn the_text_of_every_kernel_is_known() {
    for entry in KERNELS.iter() {
        let declaration = entry.declaration();
        let mut lines = (declaration.line..).map_while(|line| source(declaration.file, line));
        // A function's name, or the argument of a macro.
        let [function, given] =
            [format!("fn {}(", declaration.name), format!("! {{ {}:", declaration.name)];
        let names = |line: &str| line.contains(&function) || line.contains(&given);
        assert!(lines.any(names), "{declaration:?}");
    }
    // Also for files without a kernel, whose code kernels share.
    let src = workspace().join("gpu/src");
    let first = Path::new(KERNELS[0].declaration().file).parent().unwrap().with_file_name("");
    let mut files = 0;
    let mut folders = ["collective", "kernels", "lessons"].map(|room| src.join(room)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let below = path.strip_prefix(&src).unwrap();
                let lists_modules = below.components().count() == 2 && path.ends_with("mod.rs");
                let is_known = source(&first.join(below).to_string_lossy(), 1).is_some();
                assert!(is_known || lists_modules, "{} is not in SOURCES", below.display());
                files += usize::from(is_known);
            }
        }
    }
    assert!(files > 80, "{files}");
    let file = KERNELS[0].declaration().file;
    let last = (1..).find(|&line| source(file, line + 1).is_none()).unwrap();
    assert_eq!(source(file, last), Some("}"));
    assert_eq!((source(file, 0), source(file, last + 1)), (None, None));
    assert_eq!(source(&file.replace("gpu/", "gpu2/"), 1), None);
    assert_eq!(source("basic.rs", 1), None);
}

/// With C in A's place every kernel has a race, and its lines are named.
#[test]
fn a_finding_in_a_kernel_of_the_registry_has_its_lines() {
    for (entry, product) in products() {
        let findings = with_c_in_the_place_of_a(entry, product);
        let places = findings.iter().flat_map(|finding| {
            assert!(finding.other_place.is_some(), "a race: {finding}");
            [&finding.place, &finding.other_place].into_iter().flatten()
        });
        let lines = places.map(|place| source(&place.file, place.line).expect("known").trim());
        let lines = lines.collect::<Vec<_>>();
        assert!(!lines.is_empty() && !lines.contains(&""), "{}: {lines:?}", entry.name());
    }
}

/// Findings of a product whose C is in A's memory. It has some rows, and as many columns as several
/// blocks: within a block, barriers order reads and writes.
fn with_c_in_the_place_of_a(entry: &Entry, product: &Product) -> Vec<Finding> {
    const M: u32 = 20;
    const N: u32 = 300;
    let [len, len_b] = [(M * N) as usize, (N * N) as usize];
    let (mut a, b) = (vec![1.0f32; len], vec![1.0f32; len_b]);
    let (c, b) = (a.as_mut_ptr(), b.as_ptr());
    let a = c.cast_const();
    let [rows, cols] = product.tile();
    let config = LaunchConfig {
        dynamic_shared: entry.declaration().dynamic_shared.unwrap_or(0),
        ..LaunchConfig::new([N.div_ceil(cols), M.div_ceil(rows), 1], product.block)
    };
    let mut options = Options::default();
    // With one worker a race of the kernel is no race of this process.
    options.workers = Some(1);
    // SAFETY: the vectors outlive the launch; kernels of the registry stay inside them.
    let report = unsafe {
        let memory = |pointer, len| Memory::new(pointer, len, true);
        if entry.kernel.of_params::<PointerParams>().is_some() {
            options.memory = vec![memory(a, len), memory(b, len_b), memory(c, len)];
        }
        let problem = GemmParams::dense(M, N, N);
        let mut arguments: Vec<Named> = vec![
            ("a", Bound::Elements(Elements::read(a, len))),
            ("b", Bound::Elements(Elements::read(b, len_b))),
            ("c", Bound::Elements(Elements::write(c, len).uninit())),
        ];
        match product.is_lesson() {
            true => arguments.extend(
                [("m", &M), ("n", &N), ("k", &N)].map(|(name, size)| (name, Bound::Value(size))),
            ),
            false => arguments.extend([
                ("problem", Bound::Value(&problem)),
                ("bias", Bound::Elements(Elements::read(b, 0))),
            ]),
        }
        entry.checked.expect("a product").check_named(&config, arguments, &options)
    };
    report.unwrap().findings
}
