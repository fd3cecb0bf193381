//! Products on tensor cores: every layout, unaligned rows, packing in the background.

use gpu::registry::Family;
use host::{
    Activation, Device, Gemm, Shape,
    gemm::{Request, Scalar, Target},
};
use tests::{
    Turns, devices,
    gemm::{Bench, Case, Data, Number, Operand, Order, Place, Side, Want},
    kernels::variant,
};

/// The layouts of A and B: whether each is row-major.
pub(crate) const WAYS: [(bool, bool); 4] =
    [(true, true), (true, false), (false, true), (false, false)];

/// A product with the whole epilogue, for operands at these places. C's rows are padded, and its
/// matrices, if several, are an element apart.
pub(crate) fn full_case<T: Number>(
    [m, n, k]: [usize; 3],
    [a, b]: [Place; 2],
    (order, count): (Order, Option<usize>),
    (side, beta): (Side, f64),
    data: Data,
) -> Case<T> {
    let a = Operand::draw((m, k), a, data, 71);
    let b = Operand::draw((k, n), b, data, 72);
    let c = Place::padded((m, n), order, 2);
    let c = count.map_or(c, |of| c.batch(of, c.extent((m, n)) + 1));
    let case = Case::plain(a, b, c).scaled(2.0, beta, data, 73);
    case.biased(side, data, 74).activated(Activation::Relu)
}

/// Products of 16-bit elements on tensor cores. Of the four kernels with the same tiles exactly one
/// takes each layout of A and B, for any layout of C. (With tiles of 64 x 16 also the one that
/// takes it swapped, if that is another.) By default one of the kernels that take a case runs it,
/// with k whole or split. `whole` says which of these the first case has.
pub(crate) fn every_way_on_tensor_cores<T: Number>(whole: bool) -> usize {
    let mut count = 0;
    let kernels = <T as Scalar>::kernels();
    let kernels = kernels.filter(|kernel| kernel.product.variant.family == Family::Wgmma);
    let kernels = kernels.map(|kernel| kernel.entry.name()).collect::<Vec<_>>();
    let place = |size: (usize, usize), by_rows: bool| {
        let (order, run) = if by_rows { (Order::Rows, size.1) } else { (Order::Columns, size.0) };
        Place::padded(size, order, run.next_multiple_of(8) - run)
    };
    for device in devices() {
        let mut bench = Bench::<T>::new(&device);
        let (mut turns, target) = (Turns::on(&device, kernels.len()), Target::of(&device));
        let mut whole = whole;
        for [m, n, k] in [[37, 70, 45], [130, 300, 136], [300, 129, 8]] {
            let data = Data::exact(k);
            for (way, order) in WAYS.into_iter().flat_map(|way| Order::BOTH.map(|c| (way, c))) {
                for (side, beta, count_of) in
                    [(Side::Row, 0.0, None), (Side::Col, 3.0, None), (Side::Row, -1.0, Some(3))]
                {
                    let lies = |size: (usize, usize), by_rows: bool| {
                        let one = place(size, by_rows);
                        let step = one.extent(size).next_multiple_of(8);
                        count_of.map_or(one, |of| one.batch(of, step))
                    };
                    let places = [lies((m, k), way.0), lies((k, n), way.1)];
                    let case = full_case([m, n, k], places, (order, count_of), (side, beta), data);
                    let want = Want::exact(&case);
                    let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
                    let strides = [&case.a, &case.b, &case.c].map(|of| of.place.strides);
                    let request = Request::new(shape, strides);
                    let takes = |&kernel: &usize| {
                        let gemm = Gemm::<T>::new().kernel(kernels[kernel]).unwrap();
                        gemm.choose(&request, &target).is_ok()
                    };
                    let takers = (0..kernels.len()).filter(takes).collect::<Vec<_>>();
                    let splits = match (turns.is_all(), whole) {
                        (true, _) => &[1, 3][..],
                        (false, true) => &[1],
                        (false, false) => &[3],
                    };
                    whole = !whole;
                    for name in turns.among(&takers).into_iter().map(|kernel| kernels[kernel]) {
                        for &split in splits {
                            let c = bench
                                .run_as(&case, |gemm| gemm.kernel(name)?.split_k(split))
                                .unwrap();
                            let right = want.check(&c);
                            right.unwrap_or_else(|wrong| {
                                panic!("{wrong}\n{name} by {split}: {case}")
                            });
                        }
                    }
                    let takers = takers.len();
                    let exchanged = usize::from(way.0 == way.1);
                    // And for a K-major A and an MN-major B the two kernels with unaligned rows of
                    // A.
                    let nn = if order == Order::Rows { (true, true) } else { (false, false) };
                    assert_eq!(takers, 11 + exchanged + 2 * usize::from(way == nn), "{case}");
                    count += 1;
                }
            }
        }
        turns.each_had_one();
    }
    count / devices().len()
}

/// Unaligned rows, matrices and first elements are copied to aligned ones if there is room.
/// Otherwise the `ldg` kernels, whose tiles are `gathered`, load them.
pub(crate) fn anywhere_on_tensor_cores<T: Number>(tiles: &str, gathered: &str) -> usize {
    let even = Request::dense(Shape::new(256, 512, 128).unwrap());
    let odd = Request::dense(Shape::new(256, 512, 129).unwrap());
    let name = &*format!("{tiles}_nn");
    let named = Gemm::<T>::new().kernel(name).unwrap();
    let chosen = |request| named.choose(request, &Target::H200).unwrap();
    let auto = Gemm::<T>::new().choose(&odd, &Target::H200).unwrap().entry.name();
    assert_eq!(variant(auto).family, Family::Wgmma, "{auto}");
    assert_eq!((chosen(&even).entry.name(), chosen(&even).workspace_bytes), (name, 0));
    // Rows of A have 129 elements. Those of B, 512, are aligned.
    let needed = 2 * 256 * 136;
    assert_eq!((chosen(&odd).entry.name(), chosen(&odd).workspace_bytes), (name, needed));
    // Without room A may be unaligned, but not an MN-major B.
    let little = Gemm::<T>::new().workspace_limit(needed - 1);
    let choice = little.choose(&odd, &Target::H200).unwrap();
    assert_eq!((choice.entry.name(), choice.workspace_bytes), (&*format!("{gathered}_nn"), 0));

    let mut count = 0;
    for device in devices() {
        let mut bench = Bench::<T>::new(&device);
        for (way, name) in WAYS.into_iter().flat_map(|way| {
            let letter = |is: bool, letters: [&'static str; 2]| letters[usize::from(is)];
            // A row-major A is K-major, a row-major B MN-major.
            let name = [letter(way.0, ["t", "n"]), letter(way.1, ["t", "n"])].concat();
            let kernels = [tiles, gathered].map(|tiles| format!("{tiles}_{name}"));
            kernels
                .into_iter()
                .flat_map(move |name| [0, 3].map(|padding| ((way, padding), name.clone())))
        }) {
            let ((a_by_rows, b_by_rows), padding) = way;
            let [m, n, k] = [37, 75, 45];
            let lies = |size: (usize, usize), by_rows: bool| {
                let order = if by_rows { Order::Rows } else { Order::Columns };
                let one = Place::padded(size, order, padding).at(1);
                one.batch(2, one.extent(size) + 1)
            };
            let data = Data::exact(k);
            let a = Operand::draw((m, k), lies((m, k), a_by_rows), data, 75);
            let b = Operand::draw((k, n), lies((k, n), b_by_rows), data, 76);
            let case = Case::plain(a, b, lies((m, n), true));
            let c = bench.run(&case, Some(&name)).unwrap();
            Want::exact(&case).check(&c).unwrap_or_else(|wrong| panic!("{wrong}\n{name}: {case}"));
            count += 1;
        }
    }
    count / devices().len()
}

/// Cases in which B is packed in the background. A kernel runs one of them in turn, or all, which
/// count as one. Returns the number of cases.
pub(crate) fn copied_beside<T: Number>(
    device: &Device,
    name: &str,
    [m, n, k]: [usize; 3],
    turns: &mut Turns,
) -> usize {
    let mut bench = Bench::<T>::new(device);
    let data = Data::exact(k);
    let a = Operand::draw((m, k), Place::padded((m, k), Order::Rows, 2), data, 91);
    let b = Operand::draw((k, n), Place::dense((k, n), Order::Rows), data, 92);
    let plain = Case::plain(a, b, Place::dense((m, n), Order::Rows));
    let full = plain.clone().scaled(2.0, -1.0, data, 93).biased(Side::Col, data, 94);
    let overlapping = [[0, 1], [1, 1], [6, 1]].map(|strides| {
        let b = Operand::draw((k, n), Place::strided(strides), data, 95);
        Case { b, ..plain.clone() }
    });
    let before = turns.next_case().into_iter().map(|number| &overlapping[number]);
    let again = turns.is_all().then_some(&plain);
    let cases = [&plain, &full].into_iter().chain(again).chain(before).collect::<Vec<_>>();
    for case in &cases {
        let c = bench.run(case, Some(name)).unwrap();
        let right = Want::exact(case).check(&c);
        right.unwrap_or_else(|wrong| panic!("{wrong}\n{name}: {case}"));
    }
    // Plain, full, and one that overlaps. Even with all of them each counts as one case.
    assert!(cases.len() >= 3);
    3
}
