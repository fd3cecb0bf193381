//! Random products over several CPU devices. `fuzz --sharded 20000` tries more.

#[test]
fn the_bits_of_one_device() {
    let tally = fuzz::sharded::run(&gpu_gemm::Device::cpu(), 1, 150, || true).unwrap();
    let seen = |what: &str| tally.get(what).copied().unwrap_or(0);
    assert!(seen("right") >= 100, "{tally:?}");
    for what in [
        "all-gather + product",
        "on the first place",
        "product + reduce-scatter",
        "with empty shards",
    ] {
        assert!(seen(what) > 0, "{what}: {tally:?}");
    }
}
