mod mutant;
mod operators;
mod source;
