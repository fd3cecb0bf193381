//! Python's arrays as operands: what a type can do is found once, and kept.

mod cuda_interface;
mod kinds;
mod numpy;
mod operand;
mod read;
mod torch;

pub(crate) use self::{
    kinds::{Kind, Module},
    operand::Operand,
    read::{again, array, check_unchanged, is_unchanged},
    torch::written,
};
