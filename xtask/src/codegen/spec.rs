//! The tables of `spec/`.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::path::Path;

/// All tables.
pub struct Spec {
    pub procedures: Vec<Procedure>,
    pub callbacks: Vec<Callback>,
    pub constants: Vec<Constant>,
    /// The values of MPICH's ABI.
    pub mpich: Vec<Constant>,
}

/// One line of `procedures.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Procedure {
    /// With the prefix MPI_.
    pub name: String,
    /// The C type of the result.
    pub returns: String,
    /// The Rust function that does it, as module::function below `crates/abi/src/calls`.
    pub body: Option<String>,
    /// What the body is given before the parameters: constructors of its module, whose arguments are parameters. Those are
    /// not given by themselves then.
    #[serde(default)]
    pub with: Vec<String>,
    /// The function of the body's name in `calls/again.rs` is asked first.
    #[serde(default)]
    pub again: bool,
    /// "any": may be called before MPI_Init and after MPI_Finalize.
    pub when: Option<String>,
    pub note: Option<String>,
    pub params: Vec<Parameter>,
}

/// A parameter of a procedure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    pub name: String,
    /// The C type; an array type has its brackets at the end.
    pub c: String,
    /// The standard's own kind of the parameter.
    pub kind: Option<String>,
    /// in, out or inout.
    #[serde(rename = "dir")]
    pub direction: Option<String>,
    /// How the parameter arrives in the body (see `crates/abi/src/calls/mod.rs`).
    #[serde(rename = "as")]
    pub form: Option<String>,
    /// Whether the body is given it. If not, it is still checked.
    #[serde(default = "yes")]
    pub pass: bool,
}

fn yes() -> bool {
    true
}

/// One line of `callbacks.jsonl`.
#[derive(Deserialize)]
pub struct Callback {
    pub name: String,
    pub returns: String,
    /// As in C.
    pub params: String,
}

/// One line of `constants.csv` or `mpich-abi.csv`.
pub struct Constant {
    pub group: String,
    pub name: String,
    pub value: String,
    /// A C type, "enum" (an int enumerator) or "alias" (of another constant).
    pub c_type: String,
}

/// The types of handles, with the Rust type of the objects behind them where there is one.
pub const HANDLE_TYPES: [(&str, &str); 17] = [
    ("MPI_Comm", "Communicator"),
    ("MPI_Datatype", "Datatype"),
    ("MPI_Errhandler", "Errhandler"),
    ("MPI_File", "File"),
    ("MPI_Group", "Group"),
    ("MPI_Info", "Info"),
    ("MPI_Message", "Message"),
    ("MPI_Op", "Op"),
    ("MPI_Request", "Request"),
    ("MPI_Session", "Session"),
    ("MPI_Win", "Window"),
    ("MPI_T_enum", ""),
    ("MPI_T_cvar_handle", ""),
    ("MPI_T_pvar_handle", ""),
    ("MPI_T_pvar_session", ""),
    ("MPI_T_event_registration", ""),
    ("MPI_T_event_instance", ""),
];

/// The Rust type behind a C handle type.
pub fn class_of(c_type: &str) -> Option<&'static str> {
    let bare = bare(c_type);
    HANDLE_TYPES.iter().find(|(name, class)| *name == bare && !class.is_empty()).map(|&(_, class)| class)
}

/// A C type without const, pointers and brackets.
pub fn bare(c_type: &str) -> &str {
    let c_type = c_type.strip_prefix("const ").unwrap_or(c_type);
    c_type.split(['*', '[']).next().unwrap_or(c_type).trim()
}

impl Spec {
    /// Reads the tables of the workspace at `root`.
    pub fn load(root: &Path) -> Result<Spec> {
        let read = |name: &str| {
            std::fs::read_to_string(root.join("spec").join(name))
                .with_context(|| format!("reading spec/{name}"))
        };
        let procedures = lines(&read("procedures.jsonl")?).context("spec/procedures.jsonl")?;
        let callbacks = lines(&read("callbacks.jsonl")?).context("spec/callbacks.jsonl")?;
        let constants = constants(&read("constants.csv")?).context("spec/constants.csv")?;
        let mpich = self::constants(&read("mpich-abi.csv")?).context("spec/mpich-abi.csv")?;
        Ok(Spec { procedures, callbacks, constants, mpich })
    }
}

fn constants(text: &str) -> Result<Vec<Constant>> {
    let mut constants = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        ensure!(fields.len() == 4, "line {}: 4 fields are needed", number + 1);
        let [group, name, value, c_type] = [0, 1, 2, 3].map(|field| fields[field].to_owned());
        constants.push(Constant { group, name, value, c_type });
    }
    Ok(constants)
}

fn lines<T: for<'a> Deserialize<'a>>(text: &str) -> Result<Vec<T>> {
    text.lines()
        .enumerate()
        .map(|(number, line)| serde_json::from_str(line).with_context(|| format!("line {}", number + 1)))
        .collect()
}

/// A form with its arguments: `counts(n)` is ("counts", ["n"]).
pub fn split_form(form: &str) -> (&str, Vec<&str>) {
    match form.split_once('(') {
        Some((name, rest)) => (name, rest.trim_end_matches(')').split(',').collect()),
        None => (form, Vec::new()),
    }
}
