//! Names of designs and of their variants.

use simt::Value;

use crate::registry::{DESIGNS, KERNELS, find};

use super::*;

/// A design has the name of its variants, without what the constants say.
#[test]
fn a_kernel_is_called_what_it_is() {
    for design in DESIGNS {
        let declaration = design.declaration();
        let declares = |name| declaration.constants.iter().any(|constant| constant.name == name);
        for entry in design.entries() {
            let Some(product) = &entry.product else { continue };
            let shared = product.variant.shared_name(declares("half"), declares("a_mn_major"));
            assert_eq!(shared, declaration.name);
            assert_eq!(product.variant.to_string(), entry.name());
            let of_its_own = Value::Word(product.variant.operands.name());
            assert_eq!(entry.constants.get("half"), declares("half").then_some(of_its_own));
            if !product.is_lesson() {
                assert_eq!(entry.name().parse(), Ok(product.variant));
            }
            let variant = (!declaration.constants.is_empty()).then_some(entry.name());
            for constants in entry.specialisations() {
                assert_eq!(constants.variant(), variant, "what profilers call it");
            }
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

#[test]
fn a_name_that_is_none_is_told_what_is_wrong() {
    let wrong = |name: &str| name.parse::<Variant>().unwrap_err().to_string();
    assert_eq!(
        wrong("tiled16"),
        "kernel = tiled16: begins with no family: gemm, tma, mma or wgmma"
    );
    assert!(wrong("wgmma_f8_64x64x64").contains("its second word is f32"));
    assert!(wrong("wgmma_bf16_64x64_nn").contains("has no tile"));
    assert!(wrong("wgmma_bf16_64x64x64_c2_xx").contains("xx is none of"));
    assert!(wrong("wgmma_bf16_bf16_64x64x64_nn").contains("is written wgmma_bf16_64x64x64_nn"));
    assert!(wrong("wgmma_bf16_64x64x64_nn_s12").contains("is written wgmma_bf16_64x64x64_s12_nn"));
    let variant: Variant = "wgmma_f16_f32_256x256x64_c2_ua8_nn".parse().unwrap();
    assert_eq!((variant.operands, variant.c, variant.cluster), (Type::F16, Type::F32, 2));
    assert_eq!(variant.access, Access::UnalignedA(8));
    assert_eq!(format!("{variant:>36}|"), "  wgmma_f16_f32_256x256x64_c2_ua8_nn|");
}
