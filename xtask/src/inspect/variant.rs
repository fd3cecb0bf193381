//! The selected specialisation of a kernel.

use std::fmt;

use anyhow::{Context, Result, bail};
use specialise::Constant;

use crate::{check, declaration::Declaration, ptx::Function};

/// A constant that the kernel does not have, or an impossible value. This is the caller's mistake.
#[derive(Debug)]
pub struct BadConstant(String);

impl std::error::Error for BadConstant {}

impl fmt::Display for BadConstant {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses `half=f16,a_mn_major=1`.
///
/// # Errors
/// Text of another form.
pub fn constants(text: &str) -> Result<Vec<(String, String)>> {
    let one = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let is_word = |word: &str| !word.is_empty() && word.trim() == word;
        (is_word(name) && is_word(value)).then(|| (name.to_owned(), value.to_owned()))
    };
    let all = text.split(',').map(one).collect::<Option<Vec<_>>>();
    all.with_context(|| format!("--constants {text}: must be like half=f16,a_mn_major=1"))
}

/// The text after the kernel in a name: empty, or values of constants. `None` if it is another
/// kernel's name.
pub(super) fn split<'a>(name: &'a str, kernel: &str) -> Option<&'a str> {
    let rest = name.strip_prefix(kernel)?;
    (rest.is_empty() || rest.starts_with("__")).then_some(rest)
}

/// The constants of a kernel for a name in `host kernels`: `wgmma_bf16_64x16x64_tn` is
/// `wgmma_half_64x16x64` with bf16, and with column-major A and B. `None` for another kernel's
/// name, and for the kernel's own.
///
/// A constant of words has its name in the kernel's, and its value there in the variant's. Of the
/// other constants a variant's name has the layout at its end.
pub(super) fn of_variant(name: &str, kernel: &Declaration) -> Option<Vec<(String, String)>> {
    // N is row-major: A is K-major then, and B is not.
    const LAYOUTS: [(&str, [&str; 2]); 4] =
        [("_nn", ["0", "1"]), ("_nt", ["0", "0"]), ("_tn", ["1", "1"]), ("_tt", ["1", "0"])];
    let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let layout_of = |name: &str| -> Option<Vec<(String, String)>> {
        let (_, [a, b]) = LAYOUTS.into_iter().find(|(layout, _)| *layout == name)?;
        Some(vec![of("a_mn_major", a), of("b_mn_major", b)])
    };
    let has_layouts = ["a_mn_major", "b_mn_major"]
        .iter()
        .all(|name| kernel.constants.iter().any(|(constant, _)| constant == name));
    let is_word = |value: &String| value.parse::<u32>().is_err();
    let of_words = kernel.constants.iter().filter(|(_, values)| values.iter().all(is_word));
    let kernel = vec![(kernel.name.clone(), Vec::new())];
    let stems = of_words.fold(kernel, |stems, (constant, values)| {
        let with = |(stem, constants): (String, Vec<_>)| {
            values.iter().map(move |value| {
                let constants = constants.iter().cloned().chain([of(constant, value)]).collect();
                (stem.replacen(constant, value, 1), constants)
            })
        };
        stems.into_iter().flat_map(with).collect::<Vec<_>>()
    });
    stems.into_iter().find_map(|(stem, mut constants)| {
        match name.strip_prefix(&stem)? {
            "" => {}
            layout if has_layouts => constants.extend(layout_of(layout)?),
            _ => return None,
        }
        (!constants.is_empty()).then_some(constants)
    })
}

/// Every constant of a kernel with its value: from the name, or as given.
///
/// # Errors
/// [`BadConstant`].
pub(super) fn chosen(
    kernel: &Function,
    name: &str,
    said: &[(String, String)],
) -> Result<Vec<Constant>> {
    let kernel_name = &kernel.name;
    let all = check::declaration(kernel).map_or(vec![Vec::new()], Declaration::specialisations);
    let first = all.first().context("it has no specialisation")?;
    if name != kernel_name {
        let named = all.iter().find(|one| specialise::name(kernel_name, one) == name);
        let Some(named) = named else {
            let names = all.iter().map(|one| specialise::name(kernel_name, one));
            let names = names.filter(|name| name != kernel_name).collect::<Vec<_>>();
            let names = if names.is_empty() { "none".into() } else { names.join(", ") };
            bail!(BadConstant(format!(
                "`{name}` is no specialisation of {kernel_name}: there are {names}"
            )));
        };
        if !said.is_empty() {
            bail!(BadConstant(format!("`{name}` says all constants: leave --constants out")));
        }
        return Ok(named.clone());
    }
    let mut chosen = first.clone();
    for (number, (name, value)) in said.iter().enumerate() {
        let Some(constant) = chosen.iter_mut().find(|constant| constant.name == *name) else {
            let names = first.iter().map(|constant| constant.name.as_str()).collect::<Vec<_>>();
            let names = if names.is_empty() { "none".into() } else { names.join(", ") };
            bail!(BadConstant(format!("constant {name} = {value}: {kernel_name} has {names}")));
        };
        let mut values = Vec::new();
        for one in all.iter().flatten().filter(|one| one.name == *name) {
            if !values.contains(&one.value.as_str()) {
                values.push(&one.value);
            }
        }
        if !values.contains(&value.as_str()) {
            let values = values.join(", ");
            bail!(BadConstant(format!("constant {name} = {value}: may be {values}")));
        }
        if said[..number].iter().any(|(other, _)| other == name) {
            bail!(BadConstant(format!("constant {name} = {value}: is given twice")));
        }
        constant.value.clone_from(value);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::Module;

    fn of(name: &str, said: &str) -> Result<Vec<String>> {
        let text = ".entry k()\n{\n// simt.kernel name=k constants=a:0|1,half:bf16|f16 params=\nret; }\n\
                    .entry plain()\n{\n// simt.kernel name=plain params=\nret; }";
        let module = Module::parse(text).unwrap();
        let kernel = module.kernels().find(|kernel| split(name, &kernel.name).is_some()).unwrap();
        let said = if said.is_empty() { Vec::new() } else { constants(said)? };
        let chosen = chosen(kernel, name, &said)?;
        Ok(chosen.iter().map(|one| format!("{}={}", one.name, one.value)).collect())
    }

    #[test]
    fn what_is_not_said_is_the_first_value() {
        assert_eq!(of("k", "").unwrap(), ["a=0", "half=bf16"]);
        assert_eq!(of("k", "half=f16").unwrap(), ["a=0", "half=f16"]);
        assert_eq!(of("k", "half=f16,a=1").unwrap(), ["a=1", "half=f16"]);
        assert_eq!(of("k__a_1__half_bf16", "").unwrap(), ["a=1", "half=bf16"]);
        assert_eq!(of("plain", "").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_variant_is_known_by_the_name_that_host_has_for_it() {
        let of = |name: &str, kernel: &str| {
            let constants = of_variant(name, &kernel.parse().unwrap())?;
            let words = constants.iter().map(|(name, value)| format!("{name}={value}"));
            Some(words.collect::<Vec<_>>().join(","))
        };
        let kernel = "name=wgmma_half_64x16x64 constants=a_mn_major:0|1,b_mn_major:0|1,half:bf16|f16 params=";
        let all = of("wgmma_bf16_64x16x64_tn", kernel);
        assert_eq!(all.as_deref(), Some("half=bf16,a_mn_major=1,b_mn_major=1"));
        let all = of("wgmma_f16_64x16x64_nn", kernel);
        assert_eq!(all.as_deref(), Some("half=f16,a_mn_major=0,b_mn_major=1"));
        let gemm = "name=gemm_half_64x64x16 constants=half:bf16|f16 params=";
        assert_eq!(of("gemm_f16_64x64x16", gemm).as_deref(), Some("half=f16"));
        assert_eq!(of("gemm_f16_64x64x16_nn", gemm), None, "it has no layouts");
        let sliced = "name=wgmma_f16x3_64x128x64 constants=a_mn_major:0|1,b_mn_major:0|1 params=";
        let sliced = of("wgmma_f16x3_64x128x64_nt", sliced);
        assert_eq!(sliced.as_deref(), Some("a_mn_major=0,b_mn_major=0"));
        let of_8_bits =
            of("mma_s8_64x64x64", "name=mma_byte_64x64x64 constants=byte:u8|s8 params=");
        assert_eq!(of_8_bits.as_deref(), Some("byte=s8"));
        for other in ["wgmma_half_64x16x64", "wgmma_bf16_64x16x64_xx", "wgmma_bf16_64x16x6", "k"] {
            assert_eq!(of(other, kernel), None, "{other}");
        }
        assert_eq!(of("tiled16", "name=tiled16 params="), None, "its own name");
    }

    #[test]
    fn what_there_is_not_is_named() {
        for (name, said, words) in [
            ("k", "b=1", "constant b = 1: k has a, half"),
            ("plain", "a=1", "constant a = 1: plain has none"),
            ("k", "half=f32", "constant half = f32: may be bf16, f16"),
            ("k", "a=1,a=0", "constant a = 0: is given twice"),
            ("k__a_2", "", "`k__a_2` is no specialisation of k: there are k__a_0__half_bf16, "),
            ("plain__a_0", "", "`plain__a_0` is no specialisation of plain: there are none"),
            ("k__a_1__half_bf16", "a=1", "says all constants"),
        ] {
            let error = of(name, said).unwrap_err();
            assert!(error.downcast_ref::<BadConstant>().is_some(), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        for said in ["half", "half=", "=f16", "a=1,", "a = 1"] {
            assert!(constants(said).unwrap_err().to_string().contains("must be like"), "{said}");
        }
    }
}
