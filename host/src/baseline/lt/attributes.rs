//! The attributes of a product that are set for its types, and anew for each launch.

use std::ffi::c_void;

use super::{
    Described,
    functions::{
        DESC_A_SCALE_MODE, DESC_A_SCALE_POINTER, DESC_BIAS_POINTER, DESC_FAST_ACCUM,
        SCALE_BLK128X128, SCALE_OUTER_VEC, SCALE_VEC128, set,
    },
};
use crate::{baseline::library::check, scaling::ScaleKind};
use gpu_gemm::Result;
use simt::types::Type;

impl Described<'_> {
    /// Says how 8-bit floats are summed, and what their scales are of.
    pub(super) fn set_precision(&self) -> Result<()> {
        let (lt, functions) = (self.lt, &self.lt.functions);
        if lt.is_fast && [Type::E4M3, Type::E5M2].contains(&self.types[0]) {
            // SAFETY: the attribute is a number of 8 bits, which is copied.
            let status = unsafe { set(functions.desc_set, self.operation, DESC_FAST_ACCUM, &1i8) };
            check("cublasLtMatmulDescSetAttribute", status)?;
        }
        if let Some(kind) = self.epilogue.scales {
            // Of its A, which is B, and of its B.
            let modes = match kind {
                ScaleKind::RowsCols => [SCALE_OUTER_VEC; 2],
                ScaleKind::Blocks => [SCALE_BLK128X128, SCALE_VEC128],
            };
            for (attribute, mode) in (DESC_A_SCALE_MODE..).zip(modes) {
                // SAFETY: the attribute is a number of 32 bits, which is copied.
                let status = unsafe { set(functions.desc_set, self.operation, attribute, &mode) };
                check("cublasLtMatmulDescSetAttribute", status)?;
            }
            // For the heuristics alone: an address that is aligned as every buffer is.
            let address = lt.workspace.borrow_mut().all_mut().address_on(lt.stream)?;
            self.set_scales([address.cast_const().cast(); 2])?;
        }
        Ok(())
    }

    /// Sets the address of the bias for the launches that follow.
    pub(super) fn set_bias(&self, address: *const c_void) -> Result<()> {
        let function = self.lt.functions.desc_set;
        // SAFETY: the attribute is an address, which is copied.
        let status = unsafe { set(function, self.operation, DESC_BIAS_POINTER, &address) };
        check("cublasLtMatmulDescSetAttribute", status)
    }

    /// Sets the addresses of the scales of its A and of its B.
    pub(super) fn set_scales(&self, addresses: [*const c_void; 2]) -> Result<()> {
        let function = self.lt.functions.desc_set;
        for (attribute, address) in (DESC_A_SCALE_POINTER..).zip(addresses) {
            // SAFETY: the attribute is an address, which is copied.
            let status = unsafe { set(function, self.operation, attribute, &address) };
            check("cublasLtMatmulDescSetAttribute", status)?;
        }
        Ok(())
    }
}
