use std::{fs, thread};

use super::*;
use crate::{
    Bf16, Compute, Device, Gemm, Matrix, Shape,
    error::{Error, Result},
    gemm::{Choice, Reason, Request, Target, select},
    testing,
};

/// Microseconds are all that differs between two times of the same candidates.
fn product(m: usize, n: usize, k: usize) -> [Matrix<f32>; 3] {
    let device = Device::cpu();
    let value = |i: usize| (i * 7 % 11) as f32 - 5.0;
    let of = |rows, cols| {
        let values = (0..rows * cols).map(value).collect::<Vec<_>>();
        Matrix::from_row_major(&device, rows, cols, &values).unwrap()
    };
    [of(m, k), of(k, n), of(m, n)]
}

fn run<'a>(gemm: Gemm<'a, f32>, [a, b, c]: &mut [Matrix<f32>; 3]) -> Result<Choice> {
    gemm.run(&Device::cpu().stream().unwrap(), a.view(), b.view(), c.view_mut())
}

fn candidates(shape: [u64; 3]) -> Vec<&'static str> {
    let request = Request::dense(Shape::new(shape[0], shape[1], shape[2]).unwrap());
    let target = Target::of(&Device::cpu());
    let listed = select::shortlist::<f32, f32>(&request, &target, 8).unwrap();
    listed.into_iter().map(|(_, choice)| choice.entry.name()).collect()
}

/// The first product is timed, those like it are not; each other one is timed for itself.
#[test]
fn a_product_is_timed_once() {
    let cache = TuningCache::new();
    let gemm = Gemm::new().tuned(&cache);
    let mut small = product(40, 70, 30);
    let first = run(gemm, &mut small).unwrap();
    assert!(candidates([40, 70, 30]).contains(&first.entry.name()));
    assert!(matches!(first.reason, Reason::Tuned { timed: 2..=8, .. }), "{:?}", first.reason);
    let before = testing::counts();
    for factor in [1.0, 1.0, 1.0] {
        let again = run(gemm.alpha(factor), &mut small).unwrap();
        assert_eq!(format!("{again:?}"), format!("{first:?}"));
    }
    let after = testing::counts();
    assert_eq!((after.launches - before.launches, cache.timed()), (3, 1));
    // Another epilogue, another shape, another layout, another limit.
    run(gemm.beta(1.0), &mut small).unwrap();
    run(gemm.workspace_limit(0), &mut small).unwrap();
    run(gemm.invariant(), &mut small).unwrap();
    run(gemm.compute(Compute::Tf32), &mut small).unwrap();
    run(gemm, &mut product(41, 70, 30)).unwrap();
    assert_eq!(cache.timed(), 6);
    // A named kernel is taken as it is.
    let named = run(gemm.kernel("gemm_f32_64x64x16").unwrap(), &mut small).unwrap();
    assert_eq!((named.reason, cache.timed()), (Reason::Named, 6));
}

/// Of k = 1000 there are fewer ranges than were asked for, and the answer is found again.
#[test]
fn a_product_in_ranges_is_timed_once() {
    let cache = TuningCache::new();
    let mut long = product(40, 70, 1000);
    let asked = Gemm::new().partials(7).unwrap().tuned(&cache);
    for gemm in [asked, asked, Gemm::new().invariant().tuned(&cache)] {
        let choice = run(gemm, &mut long).unwrap();
        assert!(matches!(choice.reason, Reason::Tuned { .. }), "{:?}", choice.reason);
    }
    run(Gemm::new().invariant().tuned(&cache), &mut long).unwrap();
    assert_eq!(cache.timed(), 2);
}

/// C is read once and written once, with whatever scalars.
#[test]
fn c_is_computed_once() {
    for (alpha, beta) in [(1.0, 1.0), (2.0, -1.0), (0.0, 1.0), (1.0, 0.0)] {
        let cache = TuningCache::new();
        let [mut tuned, mut plain] = [(); 2].map(|()| product(37, 29, 41));
        let gemm = Gemm::new().alpha(alpha).beta(beta);
        run(gemm.tuned(&cache), &mut tuned).unwrap();
        run(gemm, &mut plain).unwrap();
        // Small integers: every kernel is exact.
        let [tuned, plain] = [tuned, plain].map(|[.., c]| c.to_row_major().unwrap());
        assert_eq!(tuned, plain, "{alpha} {beta}");
        assert_eq!(cache.timed(), 1);
    }
}

/// A plan says what was timed; before, it predicts.
#[test]
fn a_plan_of_a_tuned_product() {
    let cache = TuningCache::new();
    let gemm = Gemm::<f32>::new().tuned(&cache);
    let request = Request::dense(Shape::new(20, 30, 40).unwrap());
    let plan = || gemm.plan_on(&Device::cpu(), &request).unwrap();
    assert!(matches!(plan().choice().reason, Reason::Fastest { .. }));
    let mut matrices = product(20, 30, 40);
    let taken = run(gemm, &mut matrices).unwrap();
    let planned = plan();
    assert_eq!(format!("{:?}", planned.choice()), format!("{taken:?}"));
    let text = planned.choice().reason.to_string();
    assert!(text.starts_with("timed: ") && text.contains("the fastest of "), "{text}");
    let [a, b, c] = &mut matrices;
    planned.launch(&Device::cpu().stream().unwrap(), a.view(), b.view(), c.view_mut()).unwrap();
    // A column-major C is the product with A and B swapped: the same question.
    let transposed = Gemm::<f32>::new().tuned(&cache);
    let stream = Device::cpu().stream().unwrap();
    transposed.run(&stream, b.view().t(), a.view().t(), c.view_mut().t()).unwrap();
    assert_eq!(cache.timed(), 1);
}

/// Nothing is launched while a stream is prepared, nor for a product without elements.
#[test]
fn what_cannot_be_timed_is_predicted() {
    let cache = TuningCache::new();
    let gemm = Gemm::new().tuned(&cache);
    let [a, b, mut c] = product(20, 30, 40);
    let stream = Device::cpu().stream().unwrap();
    let choice = gemm.prepare(&stream, a.view(), b.view(), c.view_mut()).unwrap();
    assert!(matches!(choice.reason, Reason::Fastest { .. }));
    run(gemm, &mut product(0, 30, 40)).unwrap();
    assert_eq!(cache.timed(), 0);
    // Without memory for a second C, C is as it was.
    let before = c.to_row_major().unwrap();
    testing::refuse_allocation(1);
    let error = gemm.launch(&stream, a.view(), b.view(), c.view_mut()).unwrap_err();
    testing::refuse_allocation(0);
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    assert_eq!((c.to_row_major().unwrap(), cache.timed()), (before, 0));
}

/// Of several threads each gets the answer of the first one that was ready.
#[test]
fn threads_have_one_answer() {
    let cache = TuningCache::new();
    let name = || {
        let mut matrices = product(33, 65, 50);
        let gemm = Gemm::new().tuned(&cache);
        let first = run(gemm, &mut matrices).unwrap();
        let second = run(gemm, &mut matrices).unwrap();
        [first, second].map(|choice| format!("{choice:?}"))
    };
    let names = thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(name));
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(names.iter().flatten().all(|name| *name == names[0][0]), "{names:?}");
    assert!((1..=3).contains(&cache.timed()));
}

/// Another process, or the next one, has the answers of the file, and times nothing.
#[test]
fn a_file_has_the_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answers.txt");
    let open = || TuningCache::open(&path).unwrap();
    // Both are opened before either has an answer.
    let (one, other) = (open(), open());
    assert!(!path.exists());
    let mut matrices = product(40, 70, 30);
    let first = run(Gemm::new().tuned(&one), &mut matrices).unwrap();
    run(Gemm::new().tuned(&other), &mut product(40, 70, 31)).unwrap();
    // The answer that was written first stands.
    let same = run(Gemm::new().tuned(&other), &mut matrices).unwrap();
    assert_eq!(format!("{same:?}"), format!("{first:?}"));
    let third = open();
    let read = run(Gemm::new().tuned(&third), &mut matrices).unwrap();
    run(Gemm::new().tuned(&third), &mut product(40, 70, 31)).unwrap();
    assert_eq!((format!("{read:?}"), third.timed()), (format!("{first:?}"), 0));
    // A type of its own, in the same file.
    let half = Matrix::<Bf16>::zeros(&Device::cpu(), 8, 8).unwrap();
    let mut c = Matrix::<f32>::zeros(&Device::cpu(), 8, 8).unwrap();
    let gemm = Gemm::<Bf16, f32>::of_types().tuned(&third);
    let stream = Device::cpu().stream().unwrap();
    gemm.run(&stream, half.view(), half.view(), c.view_mut()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 4);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// What a damaged file says is refused, and stays on the disk.
#[test]
fn a_damaged_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answers.txt");
    let line = "gemm_f32_64x64x16\t1\t1\t12.5\t8\tquestion";
    let refused = |text: &str| {
        fs::write(&path, text).unwrap();
        let error = TuningCache::open(&path).unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        error.to_string().replace(&*path.to_string_lossy(), "FILE")
    };
    for (text, said) in [
        ("", "FILE: line 1 = \"\": must be \"gpu-gemm tuning 1\""),
        ("gpu-gemm tuning 2\n", "FILE: line 1 = \"gpu-gemm tuning 2\": must be"),
        ("gpu-gemm tuning 1", "FILE: its last line has no end: the file is cut off"),
        (&format!("gpu-gemm tuning 1\n{line}"), "FILE: its last line has no end"),
        ("gpu-gemm tuning 1\nhalf a li\n", "FILE: line 2 = \"half a li\": must have six fields"),
        (&format!("gpu-gemm tuning 1\n{line}\n{line}\n"), "FILE: line 3 = "),
        ("gpu-gemm tuning 1\n\t1\t1\t1\t1\tq\n", "FILE: line 2 = "),
        ("gpu-gemm tuning 1\nk\t9\t1\t1\t1\tq\n", "FILE: line 2 = "),
        ("gpu-gemm tuning 1\nk\t1\t0\t1\t1\tq\n", "FILE: line 2 = "),
        ("gpu-gemm tuning 1\nk\t1\t1\tNaN\t1\tq\n", "FILE: line 2 = "),
        ("gpu-gemm tuning 1\nk\t1\t1\t1\t0\tq\n", "FILE: line 2 = "),
    ] {
        let error = refused(text);
        assert!(error.starts_with(said), "{error}");
    }
    fs::write(&path, [b'g', 0xff]).unwrap();
    assert!(TuningCache::open(&path).is_err());
    assert!(TuningCache::open(folder.path()).is_err());
    let error = TuningCache::open(folder.path().join("none/answers")).unwrap_err();
    assert!(error.to_string().ends_with("its folder does not exist"), "{error}");

    // Damaged while it is in use: the product that would write it says so, and what was timed is
    // known.
    fs::remove_file(&path).unwrap();
    let cache = TuningCache::open(&path).unwrap();
    fs::write(&path, "another program's").unwrap();
    let mut matrices = product(8, 8, 8);
    let gemm = Gemm::new().tuned(&cache);
    let error = run(gemm, &mut matrices).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "another program's");
    run(gemm, &mut matrices).unwrap();
    assert_eq!(cache.timed(), 1);
    // The next one that is timed writes both.
    fs::remove_file(&path).unwrap();
    run(gemm, &mut product(8, 8, 9)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
}

/// A file decides which kernel is taken, among those that the product may take.
#[test]
fn a_file_allows_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answers.txt");
    let mut matrices = product(40, 70, 30);
    let right = run(Gemm::new().tuned(&TuningCache::open(&path).unwrap()), &mut matrices).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let name = right.entry.name();
    let answer = |kernel: &str, split: &str| {
        let line = text.lines().nth(1).unwrap();
        let question = line.rsplit('\t').next().unwrap();
        fs::write(&path, format!("gpu-gemm tuning 1\n{kernel}\t{split}\t1\t8\t{question}\n"))
            .unwrap();
        let cache = TuningCache::open(&path).unwrap();
        let choice = run(Gemm::new().tuned(&cache), &mut product(40, 70, 30)).unwrap();
        (choice, cache.timed())
    };
    // Of another arithmetic, unknown, of another split.
    for (kernel, split) in
        [("wgmma_tf32_128x64x32_nn", "1\t1"), ("none", "1\t1"), (name, "7\t1"), (name, "2\t64")]
    {
        let (choice, timed) = answer(kernel, split);
        assert!(choice.entry.scheme() == gpu::registry::Scheme::Native, "{kernel}");
        // A kernel that does not split k has one part, whatever is asked for.
        assert!(
            timed == 1 || choice.entry.name() == name && choice.split_k == 1,
            "{kernel} {split}"
        );
    }
    // A kernel that is allowed is taken.
    let (choice, timed) = answer("gemm_f32_64x64x16", "1\t1");
    assert_eq!((choice.entry.name(), timed), ("gemm_f32_64x64x16", 0));
}
