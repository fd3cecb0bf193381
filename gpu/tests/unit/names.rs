//! Names of designs and of their variants.

use cuda_std::Value;
use gpu::registry::{Access, Entry, KERNELS, Type, Variant, find};

/// The name of the PTX that several variants share: `half` stands for bf16 and f16, `fp8` for e4m3
/// and e5m2, and the layout is left out, and of dot products the tile.
fn shared_name(variant: Variant, of_either: [bool; 2], of_any_layout: bool) -> String {
    let layout = variant.layout.filter(|_| !of_any_layout);
    let name = Variant { layout, ..variant }.to_string();
    let name = match of_either {
        [true, false] => name.replacen(of_half(variant).name(), "half", 1),
        [true, true] => {
            name.replacen(&format!("{}_{}", variant.operands, variant.c), "fp8_half", 1)
        }
        [false, true] => name.replacen(variant.operands.name(), "fp8", 1),
        [false, false] => name,
    };
    let [m, n, k] = variant.tile;
    match variant.access {
        Access::Dot => name.replace(&format!("_{m}x{n}x{k}"), ""),
        _ => name,
    }
}

/// The type that the constant `half` chooses: of A and B, or of C where these have 8 bits.
fn of_half(variant: Variant) -> Type {
    if variant.operands.bytes() == 1 { variant.c } else { variant.operands }
}

/// A design has the name of its variants, without what the constants say.
#[test]
fn a_kernel_is_called_what_it_is() {
    for entry in KERNELS.iter() {
        let declaration = entry.declaration();
        let declares = |name| declaration.constants.iter().any(|constant| constant.name == name);
        let Some(product) = &entry.product else { continue };
        let of_either = [declares("half"), declares("fp8")];
        let shared = shared_name(product.variant, of_either, declares("a_mn_major"));
        assert_eq!(shared, declaration.name);
        assert_eq!(product.variant.to_string(), entry.name());
        let operands = product.variant.operands;
        let of_half = of_half(product.variant);
        for (name, of) in [("half", of_half), ("fp8", operands)] {
            let value = Value::Word(of.name());
            assert_eq!(entry.constants.get(name), declares(name).then_some(value));
        }
        // Scales choose no type and no layout.
        let mut of_variants = declaration.constants.iter().filter(|of| of.name != "scales");
        let variant = of_variants.next().map(|_| entry.name());
        for constants in entry.specialisations() {
            assert_eq!(constants.variant(), variant, "what profilers call it");
        }
    }
    let names = KERNELS.iter().map(Entry::name);
    let [mut sorted, mut once] = [names.clone().collect::<Vec<_>>(), names.collect()];
    sorted.sort_unstable();
    once.sort_unstable();
    once.dedup();
    assert_eq!(sorted, once, "a name is one kernel's");
    assert!(KERNELS.iter().all(|entry| find(entry.name()).is_some()));
}
