//! Shared arrays of one row less.

use syn::{
    Expr, GenericArgument, GenericParam, Macro, Path, PathArguments, PathSegment, Token, Type,
    parse::ParseStream,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use super::{Places, term};
use crate::mutants::{
    mutant::{Edit, Operator},
    source::{KernelFile, range},
};

impl Places<'_, '_> {
    /// One row less, or one element less where there are no rows.
    pub(super) fn shared_array(&mut self, call: &Macro) {
        let Ok(rows) = call.parse_body_with(rows) else { return };
        let parameter = match &rows {
            Expr::Path(path) => self.shorter_parameter(&path.path),
            _ => None,
        };
        let edits = parameter.unwrap_or_else(|| {
            let text = format!("{} - 1", term(self.mutants.file, &rows));
            vec![Edit::new(range(&rows), text)]
        });
        self.mutants.add(Operator::ShortenShared, self.number, "", edits);
    }

    /// The size of an array can be a const parameter of the function, but no expression with one in it. So
    /// the function takes one more, and everyone who calls it passes one less there.
    fn shorter_parameter(&self, rows: &Path) -> Option<Vec<Edit>> {
        let (file, function) = (self.mutants.file, self.function);
        let params = &function.generics?.params;
        let written = |param: &&GenericParam| !matches!(param, GenericParam::Lifetime(_));
        let position = params.iter().filter(written).position(
            |param| matches!(param, GenericParam::Const(param) if rows.is_ident(&param.ident)),
        )?;
        let mut edits = vec![
            Edit::new(range(rows), "SHORT"),
            Edit::new(range(params.last()?).end..range(params.last()?).end, ", const SHORT: usize"),
        ];
        let mut calls = Calls { file, function: &function.name, position, edits: &mut edits };
        calls.visit_file(file.syntax());
        Some(edits)
    }
}

/// The rows, or the length, of `f32; rows, cols`.
fn rows(input: ParseStream) -> syn::Result<Expr> {
    input.parse::<Type>()?;
    input.parse::<Token![;]>()?;
    let sizes = Punctuated::<Expr, Token![,]>::parse_terminated(input)?;
    sizes.into_iter().next().ok_or_else(|| input.error("no size"))
}

/// Finds `function::<16>` and appends one less than the argument in that position.
struct Calls<'a> {
    file: &'a KernelFile,
    function: &'a str,
    position: usize,
    edits: &'a mut Vec<Edit>,
}

impl<'ast> Visit<'ast> for Calls<'_> {
    fn visit_path_segment(&mut self, segment: &'ast PathSegment) {
        if segment.ident == self.function
            && let PathArguments::AngleBracketed(list) = &segment.arguments
        {
            let mut written =
                list.args.iter().filter(|arg| !matches!(arg, GenericArgument::Lifetime(_)));
            if let (Some(arg), Some(last)) = (written.nth(self.position), list.args.last()) {
                let text = format!(", {{ {} - 1 }}", self.file.text_of(arg));
                self.edits.push(Edit::new(range(last).end..range(last).end, text));
            }
        }
        visit::visit_path_segment(self, segment);
    }
}
