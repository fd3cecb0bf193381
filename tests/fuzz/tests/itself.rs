//! The search itself: it draws the same again, it draws everything, and it sees what is wrong.

use std::collections::BTreeSet;

use fuzz::{
    benches::Benches,
    campaign::case,
    digest,
    draw::{Pool, product},
    filled::Filled,
    product::{Kernel, Product, Types, Way, Wrong},
    refusal::Refusal,
    run::Outcome,
    shrink::shrunk,
};
use gpu_gemm::{Compute, Device, gemm::Target};
use tests::gemm::Number;

/// The products of a seed.
fn drawn(count: u64) -> Vec<Product> {
    let pool = Pool::new();
    (0..count).map(|number| product(&pool, case(7, number))).collect()
}

#[test]
fn a_seed_draws_the_same_again() {
    let texts = |of: Vec<Product>| of.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>();
    let [one, other] = [drawn(300), drawn(300)].map(texts);
    assert_eq!(one, other);
    assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), 300);
}

#[test]
fn everything_is_drawn() {
    let (pool, all) = (Pool::new(), drawn(300_000));
    let names = |entry: &gpu::registry::Entry| entry.name();
    let drawn = all.iter().filter_map(Product::named).map(names).collect::<BTreeSet<_>>();
    let missing = pool.kernels().map(names).filter(|name| !drawn.contains(name));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    let has = |what: &str, is: &dyn Fn(&Product) -> bool| {
        let count = all.iter().filter(|product| is(product)).count();
        assert!(count >= 20, "{what}: {count}");
    };
    for way in Way::ALL {
        has(&format!("{way:?}"), &|product| product.way == way);
    }
    for wrong in [
        Wrong::Bias,
        Wrong::Count,
        Wrong::Size,
        Wrong::Shares,
        Wrong::SharesLast,
        Wrong::Splits,
        Wrong::Partials,
        Wrong::PlannedSize,
        Wrong::PlannedStrides,
    ] {
        has(&format!("{wrong:?}"), &|product| product.wrong == Some(wrong));
    }
    has("as on a GPU", &|product| matches!(product.kernel, Kernel::AsOn(_)));
    has("A and B in one memory", &|product| product.shared);
    has("slices", &|product| product.prepared.iter().any(Option::is_some));
    has("k of 5000", &|product| product.size[2] >= 5000);
    has("no k", &|product| product.size[2] == 0);
    has("one B for all", &|product| product.count() > 1 && product.places[1].step == 0);
    has("no room", &|product| product.workspace_limit == Some(0));
    has("backwards", &|product| product.inverted != [[false; 2]; 3]);
}

/// One unit in one element, one bit of noise, one element in another place.
#[test]
fn what_is_wrong_is_seen() {
    let has_elements = |product: &&Product| {
        let [m, n, _] = product.size;
        m * n > 1 && product.count() > 0 && product.types == Types::F32
    };
    let all = drawn(2000);
    let mut seen = 0;
    for product in all.iter().filter(has_elements) {
        let it = Filled::<f32, f32>::new(product, product.numbers);
        let right = it.want.values.iter().map(|x| f32::nearest(*x)).collect::<Vec<_>>();
        it.want.check(product, &right).unwrap();
        for at in [0, right.len() / 2, right.len() - 1] {
            let mut wrong = right.clone();
            wrong[at] = wrong[at].next_up();
            assert!(it.want.bounds.is_some() || it.want.check(product, &wrong).is_err());
            wrong[at] = f32::NAN;
            assert!(it.want.check(product, &wrong).is_err(), "NaN: {product:?}");
            wrong[at] = right[at] + 1.0;
            assert!(it.want.check(product, &wrong).is_err(), "one more: {product:?}");
        }
        for at in [0, it.c.range().start - 1, it.c.range().end, it.c.stored.len() - 1] {
            let mut after = it.c.stored.clone();
            after[at] = f32::from_bits(after[at].to_bits() ^ 1);
            assert!(it.c.unchanged(&after).is_err(), "element {at}");
        }
        seen += 1;
    }
    assert!(seen > 100, "{seen}");
}

/// A request that is wrong is refused, and one that must not be is not: an error in the list is
/// found.
#[test]
fn refusals_are_held_to_their_reasons() {
    let mut bench = Benches::new(&Device::cpu()).unwrap();
    let (mut computed, mut refused) = (0, 0);
    for product in drawn(400).into_iter().filter(|product| product.named().is_none()) {
        let refusal = Refusal::of(&product, false, true);
        match bench.check(&product).unwrap_or_else(|wrong| panic!("{wrong}: {product:?}")) {
            Outcome::Computed(_) => {
                assert!(refusal.must.is_empty(), "{product:?}");
                computed += 1;
            }
            Outcome::Refused(argument) => {
                assert!(refusal.allows(&argument) && !refusal.allows("nothing"), "{product:?}");
                refused += 1;
            }
        }
    }
    assert!(computed > 200 && refused > 10, "{computed} computed, {refused} refused");
}

/// A product that is wrong from 7 rows on becomes one of 7 rows, with nothing else to it.
#[test]
fn what_fails_becomes_plain() {
    let fails = |product: &Product| match product.size[0] {
        0..7 => Ok(()),
        rows => Err(format!("rows {rows}")),
    };
    let all = drawn(500).into_iter().filter(|product| fails(product).is_err());
    for product in all.take(20) {
        let (plainer, wrong) = shrunk(product, "rows 99".to_owned(), fails);
        assert_eq!((plainer.size, wrong), ([7, 0, 0], "rows 7".to_owned()));
        assert!(plainer.bias.is_none() && plainer.places[0].count.is_none());
        // Another mistake than the one that was found is not followed.
        let other = |_: &Product| Err("columns".to_owned());
        let (same, _) = shrunk(product, "rows 99".to_owned(), other);
        assert_eq!(format!("{same:?}"), format!("{product:?}"));
    }
}

/// The bits of C tell the order of the sums, which integers do not: two kernels add in different
/// orders.
#[test]
fn a_digest_is_the_same_again_and_tells_orders() {
    let lines = || digest::lines(&Device::cpu(), 1, 40).unwrap().collect::<Vec<_>>();
    let first = lines();
    assert!(first.iter().all(Result::is_ok), "{first:?}");
    assert_eq!(first, lines());
    let is_taken = |product: &&Product| {
        let [m, n, k] = product.size;
        let is_run =
            product.way == Way::Run && product.wrong.is_none() && product.split_k.is_none();
        let is_f32 = product.types == Types::F32 && product.compute == Compute::Native;
        is_run && is_f32 && product.is_plain() && m * n > 0 && k > 40
    };
    let all = drawn(2000);
    let plain = all.iter().find(is_taken).unwrap();
    let mut benches = Benches::new(&Device::cpu()).unwrap();
    let [one, other] = ["gemm_f32_4x64x1", "gemm_f32_4x4x256_dot"].map(|name| {
        let kernel = Kernel::Named(gpu::registry::find(name).unwrap());
        let product = Product { kernel, partials: None, ..*plain };
        benches.digest(&product, &[Target::H200]).unwrap()
    });
    assert!(one.0.starts_with("gemm_f32_4x64x1 Named"), "{}", one.0);
    assert_ne!(one.0, other.0);
    assert_ne!(one.1, other.1);
}
