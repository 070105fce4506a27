//! The procedures as Fortran sees them.

use crate::codegen::spec::{HANDLE_TYPES, Parameter, Procedure, Spec, bare, split_form};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// `spec/fortran.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    none: Vec<String>,
    not_in_f08: Vec<String>,
    own_name: Vec<String>,
    by_hand: Vec<String>,
    address_only: Vec<String>,
    without: BTreeMap<String, Vec<String>>,
    length: Vec<Length>,
    extra: Vec<Extra>,
    callback: Vec<Callback>,
    sentinel: Vec<Sentinel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Length {
    parameter: String,
    procedures: String,
    is: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Extra {
    name: String,
    params: Vec<Parameter>,
}

/// A function of the program that MPI calls.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Callback {
    pub name: String,
    /// "name: type".
    pub params: Vec<String>,
    /// The functions of this type that the standard has.
    #[serde(default)]
    pub predefined: Vec<String>,
}

/// A variable whose address says something.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sentinel {
    pub name: String,
    /// integer, integers, status, statuses, characters, character-rows
    pub is: String,
}

/// Everything that is generated from.
pub struct Table {
    pub procedures: Vec<Binding>,
    pub callbacks: Vec<Callback>,
    pub sentinels: Vec<Sentinel>,
}

/// A procedure.
pub struct Binding {
    /// With the prefix MPI_, as in C.
    pub name: String,
    /// As in Fortran: without the ending of the large-count form, except where it keeps it.
    pub generic: String,
    /// Whether it is a large-count form.
    pub is_large: bool,
    pub in_f08: bool,
    pub by_hand: bool,
    /// The C type of the result; `int` is Fortran's last argument.
    pub returns: String,
    /// Whether Fortran has it under this name alone and without an error code.
    pub has_code: bool,
    pub arguments: Vec<Argument>,
}

/// Which way an argument goes, as far as the table says it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
    InOut,
    Unknown,
}

/// What an argument is.
#[derive(Clone, PartialEq, Eq)]
pub enum What {
    /// A buffer of any type.
    Choice(Buffer),
    /// An INTEGER.
    Int,
    /// An INTEGER of another kind, with its C type.
    Wide(&'static str),
    /// The C type.
    Handle(&'static str),
    Logical,
    Status,
    /// A CHARACTER string; for one that is given back, how long it can be in C.
    Text(String),
    /// An array of strings, and of rows of strings.
    Texts,
    TextRows,
    /// A function of the program, with its type in C.
    Function(String),
    /// The address of memory that MPI gives: an INTEGER, or a TYPE(C_PTR).
    Memory,
    /// The address of a buffer that MPI gives back, which the older forms do not tell.
    Detached,
    /// An index into an array of the program, from 1 on in Fortran.
    Index,
}

/// What is done with a buffer that is an array section with gaps.
#[derive(Clone, PartialEq, Eq)]
pub enum Buffer {
    /// Its address is passed on.
    Address,
    /// It can be described by a datatype that takes the place of these two arguments, or copied.
    Described { count: String, datatype: String },
    /// It can be copied.
    Copied,
}

/// A parameter.
pub struct Argument {
    pub name: String,
    pub what: What,
    pub direction: Direction,
    /// For arrays: how many elements, as an expression of C, where something depends on it.
    pub array: Option<Option<String>>,
    /// Whether C takes it by value.
    pub by_value: bool,
}

impl Binding {
    /// Whether a descriptor tells the shape of one of its arguments, in mpi_f08.
    pub fn has_choice(&self) -> bool {
        self.arguments.iter().any(|argument| matches!(argument.what, What::Choice(_)))
    }

    /// The name of what mpi_f08 calls, without the prefix.
    pub fn f08_name(&self) -> String {
        format!("{}{}", self.stem(), if self.has_choice() { "_f08ts" } else { "_f08" })
    }

    /// The name without the prefix.
    pub fn stem(&self) -> &str {
        &self.name["MPI_".len()..]
    }

    /// Whether the buffers are still used when it returns.
    pub fn is_nonblocking(&self) -> bool {
        const EPOCH: [&str; 6] =
            ["Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap"];
        let stem = self.stem().trim_end_matches("_c");
        let lower = stem.to_ascii_lowercase();
        let first_two = ["isend", "irecv", "ibsend", "issend", "irsend", "imrecv", "isendrecv"];
        stem.ends_with("_init")
            || EPOCH.contains(&stem)
            || matches!(stem, "Rput" | "Rget" | "Raccumulate" | "Rget_accumulate")
            || first_two.iter().any(|name| lower.starts_with(name))
            || (stem.starts_with('I') && COLLECTIVES.iter().any(|name| lower[1..].starts_with(name)))
            || lower.starts_with("file_i")
            || lower.ends_with("_begin")
            || lower.ends_with("_end")
            || lower.contains("attach")
            || lower.starts_with("win_create")
    }
}

const COLLECTIVES: [&str; 11] = [
    "allgather",
    "allreduce",
    "alltoall",
    "bcast",
    "exscan",
    "gather",
    "neighbor",
    "reduce",
    "scan",
    "scatter",
    "barrier",
];

impl Table {
    /// Reads the table below `root` and puts it together with the procedures.
    pub fn load(root: &Path, spec: &Spec) -> Result<Table> {
        let text = std::fs::read_to_string(root.join("spec/fortran.toml")).context("spec/fortran.toml")?;
        let document: Document = toml::from_str(&text).context("spec/fortran.toml")?;
        let mut procedures = Vec::new();
        for procedure in &spec.procedures {
            if !document.none.iter().any(|pattern| fits(pattern, &procedure.name)) {
                procedures.push(binding(&document, procedure).with_context(|| procedure.name.clone())?);
            }
        }
        // Where the other form has integers of 64 bits already, both are one.
        let small: Vec<(String, Vec<What>)> = procedures
            .iter()
            .filter(|one| !one.is_large)
            .map(|one| (one.generic.clone(), shapes(one)))
            .collect();
        for large in procedures.iter_mut().filter(|one| one.is_large) {
            let shape = shapes(large);
            large.in_f08 &= !small.iter().any(|(name, other)| *name == large.generic && *other == shape);
        }
        for extra in document.extra {
            let buffer = What::Choice(Buffer::Address);
            let arguments = extra.params.iter().map(|parameter| Argument {
                name: parameter.name.clone(),
                what: buffer.clone(),
                direction: Direction::InOut,
                array: None,
                by_value: false,
            });
            procedures.push(Binding {
                generic: extra.name.clone(),
                name: extra.name,
                is_large: false,
                in_f08: true,
                by_hand: true,
                returns: "int".into(),
                has_code: false,
                arguments: arguments.collect(),
            });
        }
        Ok(Table { procedures, callbacks: document.callback, sentinels: document.sentinel })
    }
}

/// What tells a procedure from another of the same name.
fn shapes(binding: &Binding) -> Vec<What> {
    let wide = |argument: &Argument| match &argument.what {
        What::Wide(_) => What::Wide("MPI_Count"),
        other => other.clone(),
    };
    binding.arguments.iter().map(wide).collect()
}

/// Whether a name fits a pattern, in which a star stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len()).any(|skipped| name.is_char_boundary(skipped) && fits(rest, &name[skipped..]))
        }),
    }
}

fn binding(document: &Document, procedure: &Procedure) -> Result<Binding> {
    let name = &procedure.name;
    let listed = |list: &[String]| list.iter().any(|pattern| fits(pattern, name));
    let is_large = name.ends_with("_c");
    let without = document.without.get(name);
    let kept: Vec<&Parameter> = procedure
        .params
        .iter()
        .filter(|one| without.is_none_or(|left_out| !left_out.contains(&one.name)))
        .collect();
    let mut arguments = Vec::new();
    for (place, parameter) in kept.iter().enumerate() {
        let argument = argument(document, procedure, parameter, kept.get(place + 1..).unwrap_or_default());
        arguments.push(argument.with_context(|| parameter.name.clone())?);
    }
    Ok(Binding {
        name: name.clone(),
        generic: match name.strip_suffix("_c") {
            Some(short) if !listed(&document.own_name) => short.to_owned(),
            _ => name.clone(),
        },
        is_large,
        in_f08: !listed(&document.not_in_f08),
        by_hand: listed(&document.by_hand),
        returns: procedure.returns.clone(),
        has_code: procedure.returns == "int" && name != "MPI_Pcontrol",
        arguments,
    })
}

fn argument(
    document: &Document,
    procedure: &Procedure,
    parameter: &Parameter,
    following: &[&Parameter],
) -> Result<Argument> {
    let Parameter { name, c, .. } = parameter;
    let kind = parameter.kind.as_deref().unwrap_or_default();
    let bare = bare(c);
    let handle = HANDLE_TYPES.iter().find(|(handle, _)| *handle == bare).map(|&(handle, _)| handle);
    let pointed = c.contains(['*', '[']);
    let is_out = pointed && !c.starts_with("const ");
    let is_index = matches!(name.as_str(), "indx" | "array_of_indices")
        && following.iter().any(|next| bare_status(next));
    let what = match kind {
        "BUFFER" => What::Choice(buffer(document, procedure, following)),
        "C_BUFFER" => What::Memory,
        "C_BUFFER2" => What::Detached,
        "EXTRA_STATE" | "ATTRIBUTE_VAL" => What::Wide("MPI_Aint"),
        "EXTRA_STATE2" | "ATTRIBUTE_VAL_10" => What::Int,
        "FUNCTION" | "POLYFUNCTION" => What::Function(bare.to_owned()),
        "STRING_ARRAY" => What::Texts,
        "STRING_2DARRAY" => What::TextRows,
        "LOGICAL" => What::Logical,
        "" if matches!(name.as_str(), "flag" | "is_set") => What::Logical,
        "" if bare == "void" && name == "buffer_addr" => What::Detached,
        "" if bare == "void" => What::Choice(Buffer::Address),
        _ if is_index => What::Index,
        _ => match (bare, handle) {
            ("char", _) => What::Text(capacity(parameter)),
            ("MPI_Status", _) => What::Status,
            ("int", _) => What::Int,
            ("MPI_Aint", _) => What::Wide("MPI_Aint"),
            ("MPI_Count", _) => What::Wide("MPI_Count"),
            ("MPI_Offset", _) => What::Wide("MPI_Offset"),
            (_, Some(handle)) => What::Handle(handle),
            _ => bail!("the C type {c} has no type in Fortran: put one into the table"),
        },
    };
    let is_array = (c.contains('[') && !matches!(what, What::Text(_))) || name.starts_with("array_of_");
    let given = document
        .length
        .iter()
        .find(|length| length.parameter == *name && fits(&length.procedures, &procedure.name))
        .map(|length| length.is.clone());
    let length = given.or_else(|| {
        // The form in the body's table names the parameter that is the length.
        let (_, inner) = split_form(parameter.form.as_deref()?);
        let length = procedure.params.iter().find(|one| inner.first() == Some(&one.name.as_str()))?;
        let pointed = if length.c.ends_with('*') { "" } else { "*" };
        Some(format!("{pointed}{}", length.name))
    });
    let direction = match (parameter.direction.as_deref(), is_out) {
        // The standard calls the buffer of MPI_Precv_init, of windows and the like "in": their addresses are.
        (Some("in"), true) if kind == "BUFFER" => Direction::InOut,
        (Some("in"), _) | (None, false) => Direction::In,
        (Some("out"), _) => Direction::Out,
        (Some("inout"), _) => Direction::InOut,
        _ => Direction::Unknown,
    };
    Ok(Argument {
        name: name.clone(),
        what,
        direction,
        array: is_array.then_some(length),
        by_value: !pointed,
    })
}

fn bare_status(parameter: &Parameter) -> bool {
    bare(&parameter.c) == "MPI_Status"
}

/// How long a string that C gives back can be.
fn capacity(parameter: &Parameter) -> String {
    let (_, inner) = split_form(parameter.form.as_deref().unwrap_or_default());
    match inner.first() {
        Some(most) if most.starts_with("MPI_MAX_") => (*most).to_owned(),
        _ => "MPI_MAX_PORT_NAME".to_owned(),
    }
}

/// What can be done with a buffer of the procedure that the parameters `following` come behind.
fn buffer(document: &Document, procedure: &Procedure, following: &[&Parameter]) -> Buffer {
    let name = procedure.name.to_ascii_lowercase();
    if document.address_only.iter().any(|pattern| fits(pattern, &procedure.name)) {
        return Buffer::Address;
    }
    let is_reduction =
        procedure.params.iter().any(|one| bare(&one.c) == "MPI_Op") && !name.contains("accumulate");
    let many_blocks = name.contains("alltoall")
        || name.contains("psend")
        || name.contains("precv")
        || (name.contains("gather") && following.first().is_some_and(|next| next.name.starts_with("recv")))
        || (name.contains("scatter") && following.first().is_some_and(|next| next.name.starts_with("send")));
    match following {
        [count, datatype, ..]
            if !is_reduction
                && !many_blocks
                && matches!(count.c.as_str(), "int" | "MPI_Count")
                && datatype.c == "MPI_Datatype" =>
        {
            Buffer::Described { count: count.name.clone(), datatype: datatype.name.clone() }
        }
        _ => Buffer::Copied,
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(fits("MPI_*_toint", "MPI_Comm_toint"));
        assert!(fits("MPI_*eighbor_alltoallw*", "MPI_Ineighbor_alltoallw_c"));
        assert!(fits("MPI_T_*", "MPI_T_"));
        assert!(!fits("MPI_T_*", "MPI_Type_size"));
        assert!(!fits("MPI_Init", "MPI_Init_thread"));
    }
}
