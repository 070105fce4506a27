//! `crates/abi-mpich/src/generated`: the exports of MPICH's ABI. Each converts its arguments, calls the procedure of the
//! standard's library, and converts the results.

use super::Files;
use super::exports::raw_type;
use super::spec::{Constant, HANDLE_TYPES, Parameter, Procedure, Spec, bare, class_of, split_form};
use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const FOLDER: &str = "crates/abi-mpich/src/generated";

/// The Rust type that converts the handles of a C type: named as in C, without MPI_.
fn class(c_type: &str) -> Option<&str> {
    class_of(c_type).and(bare(c_type).strip_prefix("MPI_"))
}

/// Integers of which each names one thing: the name of the conversion, the groups of constants that have it.
const ENUMERATIONS: [(&str, &[&str]); 18] = [
    ("rank", &["Special ranks", "Wildcards"]),
    ("tag", &["Wildcards"]),
    ("thread_level", &["Thread levels"]),
    ("order", &["Array Datatype Order"]),
    ("distribution", &["Array Datatype Distribution"]),
    ("combiner", &["Datatype Decoding Combiners"]),
    ("typeclass", &["Fortran Datatype Matching"]),
    ("comparison", &["Communicator and Group Comparisons"]),
    ("topology", &["Communicator Virtual Topology Types"]),
    ("split_type", &["Communicator Split Types"]),
    ("lock_type", &["Window Lock Types"]),
    ("flavor", &["Window Create Flavors"]),
    ("memory_model", &["Window Memory Models"]),
    ("whence", &["File Positioning"]),
    (
        "keyval",
        &["Invalid Attribute Key", "Predefined communicator attributes", "Predefined window attributes"],
    ),
    ("pvar_class", &["Tool performance variable classes"]),
    ("safety", &["Tool callback safety"]),
    ("source_order", &["Tool source order"]),
];

/// Further ones, whose MPICH values have nothing to do with the standard's for an invalid value either.
const TOOL_ENUMERATIONS: [(&str, &[&str]); 3] =
    [("verbosity", &["Tool verbosity"]), ("binding", &["Tool binding"]), ("scope", &["Tool scope"])];

/// Integers made of bits.
const FLAGS: [(&str, &str); 2] = [("file_mode", "File Open Modes"), ("assertion", "Window Assertion Modes")];

/// Procedures that `crates/abi-mpich/src/own` does by hand.
const OWN: [&str; 48] = [
    "MPI_Abi_get_version",
    "MPI_Attr_get",
    "MPI_Buffer_detach",
    "MPI_Buffer_detach_c",
    "MPI_Comm_create_errhandler",
    "MPI_Comm_create_keyval",
    "MPI_Comm_detach_buffer",
    "MPI_Comm_detach_buffer_c",
    "MPI_Comm_get_attr",
    "MPI_Comm_spawn",
    "MPI_Comm_spawn_multiple",
    "MPI_File_create_errhandler",
    "MPI_File_fromint",
    "MPI_File_set_view",
    "MPI_File_toint",
    "MPI_Get_processor_name",
    "MPI_Grequest_start",
    "MPI_Group_translate_ranks",
    "MPI_Info_get_nthkey",
    "MPI_Info_set",
    "MPI_Keyval_create",
    "MPI_Lookup_name",
    "MPI_Op_create",
    "MPI_Op_create_c",
    "MPI_Open_port",
    "MPI_Pcontrol",
    "MPI_Precv_init",
    "MPI_Psend_init",
    "MPI_Register_datarep",
    "MPI_Register_datarep_c",
    "MPI_Session_create_errhandler",
    "MPI_Session_detach_buffer",
    "MPI_Session_detach_buffer_c",
    "MPI_T_cvar_handle_alloc",
    "MPI_T_event_get_info",
    "MPI_T_event_handle_alloc",
    "MPI_T_event_handle_free",
    "MPI_T_event_register_callback",
    "MPI_T_event_set_dropped_handler",
    "MPI_T_pvar_handle_alloc",
    "MPI_Type_create_darray",
    "MPI_Type_create_darray_c",
    "MPI_Type_create_keyval",
    "MPI_Type_get_contents",
    "MPI_Type_get_contents_c",
    "MPI_Win_create_errhandler",
    "MPI_Win_create_keyval",
    "MPI_Win_get_attr",
];

/// Datatypes of MPICH that the standard has under another name.
const OTHER_DATATYPES: [(&str, &str); 1] = [("MPIX_C_FLOAT16", "MPI_REAL2")];

/// Parameters whose type in MPICH's header is not the standard's.
const OTHER_TYPES: [(&str, &str, &str); 2] =
    [("MPI_Psend_init", "count", "i64"), ("MPI_Precv_init", "count", "i64")];

/// The entries of the standard's library beyond the standard that the conversion needs, with their signatures.
const FURTHER: [(&str, &str, &str); 12] = [
    (
        "MPIX_Op_create_x",
        "function: usize, destructor: usize, commute: c_int, extra_state: *mut c_void, op: *mut usize",
        "c_int",
    ),
    (
        "MPIX_Comm_create_errhandler_extra",
        "function: usize, destructor: usize, extra_state: *mut c_void, errhandler: *mut usize",
        "c_int",
    ),
    (
        "MPIX_File_create_errhandler_extra",
        "function: usize, destructor: usize, extra_state: *mut c_void, errhandler: *mut usize",
        "c_int",
    ),
    (
        "MPIX_Session_create_errhandler_extra",
        "function: usize, destructor: usize, extra_state: *mut c_void, errhandler: *mut usize",
        "c_int",
    ),
    (
        "MPIX_Win_create_errhandler_extra",
        "function: usize, destructor: usize, extra_state: *mut c_void, errhandler: *mut usize",
        "c_int",
    ),
    (
        "MPIX_Comm_exchange_sizes",
        "comm: usize, neighbors: c_int, senders: *mut i64, receivers: *mut i64",
        "c_int",
    ),
    ("MPIX_Comm_revoke", "comm: usize", "c_int"),
    ("MPIX_Comm_shrink", "comm: usize, newcomm: *mut usize", "c_int"),
    ("MPIX_Comm_agree", "comm: usize, flag: *mut c_int", "c_int"),
    ("MPIX_Comm_get_failed", "comm: usize, failedgrp: *mut usize", "c_int"),
    ("MPIX_Comm_failure_ack", "comm: usize", "c_int"),
    ("MPIX_Comm_failure_get_acked", "comm: usize, failedgrp: *mut usize", "c_int"),
];

/// The error classes of fault tolerance: MPICH's, those of `mpi`'s `recovery.rs`.
const FURTHER_CLASSES: [(&str, i32, i32); 3] = [
    ("MPIX_ERR_PROC_FAILED", 101, 0x3f01),
    ("MPIX_ERR_PROC_FAILED_PENDING", 102, 0x3f02),
    ("MPIX_ERR_REVOKED", 103, 0x3f03),
];

/// Adds the generated files.
pub fn rust(spec: &Spec, mpich: &[Constant], files: &mut Files) -> Result<()> {
    let facts = Facts::new(spec, mpich)?;
    files.insert(format!("{FOLDER}/tables.rs").into(), tables(&facts)?);
    files.insert(format!("{FOLDER}/standard.rs").into(), standard(spec)?);
    let mut modules: BTreeMap<String, String> = BTreeMap::new();
    for name in OWN {
        ensure!(spec.procedures.iter().any(|one| one.name == name), "{name} is not in the table");
    }
    for procedure in &spec.procedures {
        let text = modules.entry(module_of(&procedure.name)).or_insert_with(|| {
            "//! Generated by `cargo xtask codegen` from spec/procedures.jsonl and spec/mpich-abi.csv.\n\n\
             use crate::arguments::*;\nuse crate::codes::*;\nuse crate::generated::standard;\nuse crate::generated::tables::*;\n\
             use crate::handles::*;\nuse crate::own;\nuse crate::status::*;\nuse std::ffi::{c_char, c_int, c_void};\n"
                .to_owned()
        });
        procedure_text(procedure, text).with_context(|| procedure.name.clone())?;
    }
    let mut index = String::from(
        "//! Generated by `cargo xtask codegen`.\n\n\
         #![allow(clippy::missing_safety_doc, clippy::too_many_arguments, clippy::undocumented_unsafe_blocks, non_snake_case, unused_imports, unused_unsafe)]\n\n",
    );
    for name in modules.keys().map(String::as_str).chain(["standard", "tables"]) {
        writeln!(index, "pub mod {name};")?;
    }
    files.insert(format!("{FOLDER}/mod.rs").into(), index);
    for (name, text) in modules {
        files.insert(format!("{FOLDER}/{name}.rs").into(), text);
    }
    Ok(())
}

/// The file for a procedure: the first word of its name, where many have it.
fn module_of(name: &str) -> String {
    const WORDS: [&str; 10] =
        ["comm", "file", "group", "info", "neighbor", "session", "status", "t", "type", "win"];
    let name = name.trim_start_matches("MPI_").to_ascii_lowercase();
    let first = name.split('_').next().unwrap_or_default();
    match WORDS.iter().find(|word| **word == first) {
        Some(&"t") => "tool".to_owned(),
        Some(&"type") => "datatype".to_owned(),
        Some(word) => (*word).to_owned(),
        None if name.starts_with("ineighbor") => "neighbor".to_owned(),
        None => format!("other_{}", if name.as_bytes()[0] < b'i' { "a_to_h" } else { "i_to_z" }),
    }
}

/// The constants of both ABIs, by name.
struct Facts<'a> {
    spec: &'a Spec,
    /// MPICH's values.
    mpich: BTreeMap<&'a str, &'a Constant>,
}

impl<'a> Facts<'a> {
    fn new(spec: &'a Spec, mpich: &'a [Constant]) -> Result<Facts<'a>> {
        let facts = Facts { spec, mpich: mpich.iter().map(|one| (one.name.as_str(), one)).collect() };
        ensure!(facts.mpich.len() == mpich.len(), "spec/mpich-abi.csv: a name stands twice");
        Ok(facts)
    }

    /// The pairs (name, MPICH's value, the standard's value) of the constants that `wanted` names and both ABIs have.
    fn pairs(&self, wanted: impl Fn(&Constant) -> bool) -> Result<Vec<(&'a str, i64, i64)>> {
        let mut pairs = Vec::new();
        for one in self.spec.constants.iter().filter(|one| one.c_type != "alias" && wanted(one)) {
            if let Some(other) = self.mpich.get(one.name.as_str()) {
                pairs.push((one.name.as_str(), number(other)?, number(one)?));
            }
        }
        ensure!(!pairs.is_empty(), "no constants");
        Ok(pairs)
    }

    fn of_groups(&self, groups: &[&str]) -> Result<Vec<(&'a str, i64, i64)>> {
        self.pairs(|one| groups.contains(&one.group.as_str())).with_context(|| groups.join(", "))
    }
}

/// The value of a constant; hexadecimal ones are 32 bits wide, and negative with the highest bit set.
fn number(constant: &Constant) -> Result<i64> {
    let text = constant.value.as_str();
    match text.strip_prefix("0x") {
        Some(digits) => {
            let value = u32::from_str_radix(digits, 16).with_context(|| constant.name.clone())?;
            Ok(i64::from(value as i32))
        }
        None => text.parse().with_context(|| format!("{}: {text}", constant.name)),
    }
}

fn tables(facts: &Facts<'_>) -> Result<String> {
    let mut text = String::from(
        "//! The constants of both ABIs beside each other.\n//!\n\
         //! Generated by `cargo xtask codegen` from spec/constants.csv and spec/mpich-abi.csv.\n\n\
         use crate::codes::INVALID;\nuse std::ffi::c_int;\n",
    );
    for (c_type, class) in HANDLE_TYPES.iter().filter_map(|&(c_type, _)| Some((c_type, class(c_type)?))) {
        let pairs = facts.pairs(|one| one.c_type == c_type).context(c_type)?;
        let name = class.to_ascii_uppercase();
        writeln!(text, "\n/// The predefined handles of {c_type}: MPICH's value, the standard's.")?;
        writeln!(text, "pub const {name}: &[(c_int, usize)] = &[")?;
        for (name, mpich, standard) in &pairs {
            writeln!(text, "    (0x{:08x}_u32 as c_int, {standard:#x}), // {name}", *mpich as i32)?;
        }
        writeln!(text, "];")?;
    }
    writeln!(text, "\n/// Datatypes of MPICH that have another name in the standard.")?;
    writeln!(text, "pub const OTHER_DATATYPES: &[(c_int, usize)] = &[")?;
    for (mpich, standard) in OTHER_DATATYPES {
        let raw = number(facts.mpich.get(mpich).context(mpich)?)? as i32;
        let one = facts.spec.constants.iter().find(|one| one.name == standard).context(standard)?;
        writeln!(text, "    (0x{raw:08x}_u32 as c_int, {:#x}), // {mpich}: {standard}", number(one)?)?;
    }
    writeln!(text, "];")?;
    // MPI_ANY_SOURCE and MPI_ANY_TAG stand in one group.
    for (name, groups) in ENUMERATIONS.iter().chain(&TOOL_ENUMERATIONS) {
        let mut pairs = facts.of_groups(groups)?;
        match *name {
            "rank" => pairs.retain(|pair| pair.0 != "MPI_ANY_TAG"),
            "tag" => pairs.retain(|pair| pair.0 == "MPI_ANY_TAG"),
            _ => {}
        }
        let ours: BTreeSet<i64> = pairs.iter().map(|pair| pair.1).collect();
        writeln!(text, "\n/// {}: from MPICH's value to the standard's.", groups.join(", "))?;
        writeln!(text, "#[inline]\npub fn {name}_in(value: c_int) -> c_int {{\n    match value {{")?;
        for (name, mpich, standard) in &pairs {
            writeln!(text, "        {mpich} => {standard}, // {name}")?;
        }
        // What MPICH does not know must not become what the standard knows.
        let taken: BTreeSet<i64> =
            pairs.iter().map(|pair| pair.2).filter(|value| !ours.contains(value)).collect();
        for value in taken {
            writeln!(text, "        {value} => INVALID,")?;
        }
        writeln!(text, "        other => other,\n    }}\n}}\n")?;
        writeln!(text, "/// {}: from the standard's value to MPICH's.", groups.join(", "))?;
        writeln!(text, "#[inline]\npub fn {name}_out(value: c_int) -> c_int {{\n    match value {{")?;
        for (name, mpich, standard) in &pairs {
            writeln!(text, "        {standard} => {mpich}, // {name}")?;
        }
        writeln!(text, "        other => other,\n    }}\n}}")?;
    }
    for (name, group) in FLAGS {
        let pairs = facts.of_groups(&[group])?;
        writeln!(text, "\n/// {group}: (MPICH's bit, the standard's).")?;
        writeln!(text, "pub const {}: &[(c_int, c_int)] = &[", name.to_ascii_uppercase())?;
        for (name, mpich, standard) in pairs {
            writeln!(text, "    ({mpich}, {standard}), // {name}")?;
        }
        writeln!(text, "];")?;
    }
    let classes = facts.pairs(|one| one.group.starts_with("Error ") && one.name != "MPI_ERR_LASTCODE")?;
    writeln!(
        text,
        "\n/// The error classes: (MPICH's, the standard's).\npub const ERROR_CLASSES: &[(c_int, c_int)] = &["
    )?;
    for (name, mpich, standard) in classes {
        writeln!(text, "    ({mpich}, {standard}), // {name}")?;
    }
    for (name, mpich, standard) in FURTHER_CLASSES {
        writeln!(text, "    ({mpich}, {standard}), // {name}")?;
    }
    writeln!(text, "];")?;
    for (wanted, kind) in [
        ("MPI_ERR_LASTCODE", "c_int"),
        ("MPI_DISPLACEMENT_CURRENT", "i64"),
        ("MPI_DISTRIBUTE_DFLT_DARG", "c_int"),
        ("MPI_MAX_PROCESSOR_NAME", "usize"),
        ("MPI_MAX_PORT_NAME", "usize"),
        ("MPI_MAX_INFO_KEY", "usize"),
        ("MPI_IN_PLACE", "isize"),
        ("MPI_BUFFER_AUTOMATIC", "isize"),
        ("MPI_STATUS_IGNORE", "usize"),
        ("MPI_WIN_CREATE_FLAVOR", "c_int"),
        ("MPI_WIN_MODEL", "c_int"),
        ("MPI_IO", "c_int"),
        ("MPI_HOST", "c_int"),
        ("MPI_LASTUSEDCODE", "c_int"),
        ("MPI_COMBINER_SUBARRAY", "c_int"),
        ("MPI_COMBINER_DARRAY", "c_int"),
        ("MPI_ERR_PORT", "c_int"),
        ("MPI_ERR_INFO_KEY", "c_int"),
    ] {
        let (_, mpich, standard) = facts.pairs(|one| one.name == wanted).context(wanted)?[0];
        writeln!(text, "\n/// {wanted} of MPICH and of the standard.")?;
        writeln!(text, "pub const {wanted}: ({kind}, {kind}) = ({mpich}, {standard});")?;
    }
    for wanted in ["MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY", "MPI_T_PVAR_ALL_HANDLES", "MPI_COMM_DUP_FN"] {
        let standard = facts.spec.constants.iter().find(|one| one.name == wanted).context(wanted)?;
        writeln!(text, "\n/// {wanted} of the standard; in MPICH's ABI it is a symbol of the library.")?;
        writeln!(text, "pub const {wanted}: usize = {};", number(standard)?)?;
    }
    Ok(text)
}

/// The table of the entries of the standard's library, and a function of the right type for each.
fn standard(spec: &Spec) -> Result<String> {
    let mut text = String::from(
        "//! The procedures of the standard's library, which are called through a table of addresses.\n//!\n\
         //! Generated by `cargo xtask codegen` from spec/procedures.jsonl.\n\n\
         use crate::load;\nuse crate::status::StandardStatus;\nuse std::ffi::{CStr, c_char, c_int, c_void};\n",
    );
    let mut names = Vec::new();
    for procedure in &spec.procedures {
        let parameters: Vec<String> = procedure
            .params
            .iter()
            .filter(|parameter| parameter.c != "...")
            .map(|parameter| {
                let kind = raw_type(&parameter.c)?.replace("StatusRecord", "StandardStatus");
                Ok(format!("{}: {kind}", parameter.name))
            })
            .collect::<Result<_>>()?;
        let returns = return_type(&procedure.returns)?;
        entry(&mut text, names.len(), &procedure.name, &parameters.join(", "), returns)?;
        names.push(procedure.name.as_str());
    }
    for (name, parameters, returns) in FURTHER {
        entry(&mut text, names.len(), name, parameters, returns)?;
        names.push(name);
    }
    writeln!(text, "\n/// How many there are.\npub const COUNT: usize = {};", names.len())?;
    writeln!(
        text,
        "\n/// Their names in the library, in the order of the table.\npub const NAMES: [&CStr; COUNT] = ["
    )?;
    for name in names {
        writeln!(text, "    c\"P{name}\",")?;
    }
    writeln!(text, "];")?;
    Ok(text)
}

fn entry(text: &mut String, index: usize, name: &str, parameters: &str, returns: &str) -> Result<()> {
    let types: Vec<&str> =
        parameters.split(", ").filter_map(|one| one.split_once(": ").map(|(_, kind)| kind)).collect();
    let names: Vec<&str> =
        parameters.split(", ").filter_map(|one| one.split_once(": ").map(|(name, _)| name)).collect();
    writeln!(
        text,
        "\n#[inline(always)]\npub unsafe fn {name}({parameters}) -> {returns} {{\n    \
         let entry: unsafe extern \"C\" fn({}) -> {returns} = unsafe {{ std::mem::transmute(load::address({index})) }};\n    \
         unsafe {{ entry({}) }}\n}}",
        types.join(", "),
        names.join(", ")
    )?;
    Ok(())
}

fn return_type(c: &str) -> Result<&'static str> {
    Ok(match c {
        "int" => "c_int",
        "double" => "f64",
        "MPI_Aint" => "i64",
        name if class(name).is_some() => "usize",
        other => bail!("no Rust type for the result {other}"),
    })
}

/// The Rust type of a parameter of MPICH's ABI.
fn mpich_type(procedure: &Procedure, parameter: &Parameter) -> Result<String> {
    if let Some((.., kind)) =
        OTHER_TYPES.iter().find(|(name, wanted, _)| *name == procedure.name && *wanted == parameter.name)
    {
        return Ok((*kind).to_owned());
    }
    let kind = raw_type(&parameter.c)?.replace("StatusRecord", "Status");
    Ok(match class(&parameter.c) {
        Some("File") | None => kind,
        Some(_) => kind.replace("usize", "c_int"),
    })
}

fn procedure_text(procedure: &Procedure, text: &mut String) -> Result<()> {
    let name = procedure.name.as_str();
    let inner = match name.trim_start_matches("MPI_").to_ascii_lowercase().as_str() {
        word @ "start" => format!("{word}_one"),
        word => word.to_owned(),
    };
    let given: Vec<&Parameter> = procedure.params.iter().filter(|parameter| parameter.c != "...").collect();
    let mut signature = Vec::new();
    for parameter in &given {
        signature.push(format!("{}: {}", parameter.name, mpich_type(procedure, parameter)?));
    }
    let signature = signature.join(", ");
    let names: Vec<&str> = given.iter().map(|parameter| parameter.name.as_str()).collect();
    let names = names.join(", ");
    let returns = match (class(&procedure.returns), return_type(&procedure.returns)?) {
        (Some("File") | None, kind) => kind,
        (Some(_), _) => "c_int",
    };
    let called = if OWN.contains(&name) {
        format!("own::{inner}({names})")
    } else {
        writeln!(text, "\nunsafe fn {inner}({signature}) -> {returns} {{\n    unsafe {{")?;
        text.push_str(&conversion(procedure, &given)?);
        writeln!(text, "    }}\n}}")?;
        format!("{inner}({names})")
    };
    for prefix in ["", "P"] {
        writeln!(
            text,
            "\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{name}({signature}) -> {returns} {{\n    \
             unsafe {{ {called} }}\n}}"
        )?;
    }
    Ok(())
}

/// What becomes of one argument.
#[derive(Default)]
struct Step {
    before: String,
    pass: String,
    after: String,
}

fn conversion(procedure: &Procedure, given: &[&Parameter]) -> Result<String> {
    let mut before = String::new();
    let mut after = String::new();
    let mut passed = Vec::new();
    if is_handle_number(procedure) {
        // MPICH's handles are the numbers.
        return Ok(format!("        {}\n", given[0].name));
    }
    if given.iter().any(|parameter| form(parameter).0 == "handle-array") {
        let neighbors = procedure.name.to_ascii_lowercase().contains("neighbor");
        writeln!(before, "        let sizes = Sizes::of(comm, {neighbors});")?;
    }
    for parameter in given {
        let step = step(procedure, given, parameter).with_context(|| parameter.name.clone())?;
        before.push_str(&step.before);
        after.push_str(&step.after);
        passed.push(step.pass);
    }
    let call = format!("standard::{}({})", procedure.name, passed.join(", "));
    Ok(match (procedure.returns.as_str(), after.is_empty()) {
        ("int", true) => format!("{before}        code_out({call})\n"),
        ("int", false) => format!("{before}        let code = {call};\n{after}        code_out(code)\n"),
        (_, true) => format!("{before}        {call}\n"),
        (other, false) => bail!("returns {other} and changes arguments"),
    })
}

/// Whether it is one of MPI_Comm_toint and its siblings.
fn is_handle_number(procedure: &Procedure) -> bool {
    procedure.name.ends_with("_toint") || procedure.name.ends_with("_fromint")
}

fn form(parameter: &Parameter) -> (&str, Vec<&str>) {
    split_form(parameter.form.as_deref().unwrap_or(""))
}

fn step(procedure: &Procedure, given: &[&Parameter], parameter: &Parameter) -> Result<Step> {
    let n = parameter.name.as_str();
    let c = parameter.c.as_str();
    let base = bare(c);
    let (form, more) = form(parameter);
    let length = more.first().copied().unwrap_or("0");
    let constant = c.starts_with("const ");
    let array = c.contains("[]");
    let pointer = c.contains('*') || array;
    let plain = |pass: String| Step { pass, ..Step::default() };
    let guarded = |made: String| Step {
        before: format!("        let mut {n}_ = {made};\n"),
        pass: format!("{n}_.place()"),
        after: format!("        {n}_.finish();\n"),
    };
    if let Some(class) = class(base) {
        return Ok(match (pointer, array) {
            (false, _) => plain(format!("{class}::input({n})")),
            (true, false) => match parameter.direction.as_deref() {
                Some("out") | None => guarded(format!("OutHandle::<{class}>::new({n})")),
                Some("inout") => guarded(format!("InOutHandle::<{class}>::new({n})")),
                Some("in") => {
                    Step { after: String::new(), ..guarded(format!("InOutHandle::<{class}>::new({n})")) }
                }
                Some(other) => bail!("a handle of direction {other}"),
            },
            (true, true) if form == "handle-array" => {
                let (side, buffer) =
                    if n.starts_with("send") { ("receivers", "sendbuf") } else { ("senders", "recvbuf") };
                Step {
                    before: format!(
                        "        let {n}_ = Handles::new::<{class}>({n}, sizes.{side}.unless_in_place({buffer}));\n"
                    ),
                    pass: format!("{n}_.place()"),
                    after: String::new(),
                }
            }
            (true, true) if constant => Step {
                before: format!(
                    "        let {n}_ = Handles::new::<{class}>({n}, {});\n",
                    as_long(given, length)
                ),
                pass: format!("{n}_.place()"),
                after: String::new(),
            },
            (true, true) => guarded(format!("InOutHandles::<{class}>::new({n}, i64::from({length}))")),
        });
    }
    if base == "MPI_Status" {
        return Ok(if constant {
            Step {
                before: format!("        let {n}_ = StatusIn::new({n});\n"),
                pass: format!("{n}_.place()"),
                after: String::new(),
            }
        } else if form == "status-inout" {
            guarded(format!("StatusInOut::new({n})"))
        } else if form == "statuses-out" {
            guarded(format!("StatusesOut::new({n}, i64::from({length}))"))
        } else {
            guarded(format!("StatusOut::new({n})"))
        });
    }
    let is_int = matches!(base, "int" | "MPI_T_cb_safety" | "MPI_T_source_order");
    if is_int && let Some(kind) = integer(procedure, parameter) {
        return Ok(match (pointer, array) {
            (false, _) => plain(format!("{kind}_in({n})")),
            (true, false) if form.starts_with("inout") => {
                guarded(format!("InOutInt::new({n}, {kind}_in, {kind}_out)"))
            }
            (true, false) => guarded(format!("OutInt::new({n}, {kind}_out)")),
            // Arrays of ranks hold none of the special ones, but for MPI_Group_translate_ranks.
            (true, true) if kind == "rank" => plain(n.to_owned()),
            (true, true) => bail!("an array of {kind}"),
        });
    }
    // An address as such has no special values.
    if base == "void" && !array && form == "buffer" && procedure.name != "MPI_Get_address" {
        return Ok(plain(if constant { format!("buffer_in({n})") } else { format!("buffer_in_mut({n})") }));
    }
    Ok(plain(n.to_owned()))
}

/// The length `name` as an i64, whatever its own type.
fn as_long(given: &[&Parameter], name: &str) -> String {
    match given.iter().find(|parameter| parameter.name == name) {
        Some(parameter) if parameter.c == "MPI_Count" => name.to_owned(),
        _ => format!("i64::from({name})"),
    }
}

/// Which conversion an integer argument needs.
fn integer(procedure: &Procedure, parameter: &Parameter) -> Option<&'static str> {
    let (form, _) = form(parameter);
    let by_kind = match parameter.kind.as_deref().unwrap_or("") {
        "RANK" | "RANK_NNI" => "rank",
        "TAG" => "tag",
        // Its code goes to the shell.
        "ERROR_CODE" if procedure.name == "MPI_Abort" => return None,
        "ERROR_CODE" | "ERROR_CLASS" => "code",
        "THREAD_LEVEL" => "thread_level",
        "ORDER" => "order",
        "COMBINER" => "combiner",
        "TYPECLASS" => "typeclass",
        "COMM_COMPARISON" | "GROUP_COMPARISON" => "comparison",
        "TOPOLOGY_TYPE" => "topology",
        "SPLIT_TYPE" => "split_type",
        "LOCK_TYPE" => "lock_type",
        "UPDATE_MODE" => "whence",
        "KEYVAL" => "keyval",
        "ACCESS_MODE" => "file_mode",
        "ASSERT" => "assertion",
        "PVAR_CLASS" => "pvar_class",
        "BIND_TYPE" => "binding",
        "VARIABLE_SCOPE" => "scope",
        "TOOL_VAR_VERBOSITY" => "verbosity",
        "CALLBACK_SAFETY" => "safety",
        "SOURCE_ORDERING" => "source_order",
        _ => "",
    };
    if !by_kind.is_empty() {
        return Some(by_kind);
    }
    // Some newer procedures have no kinds in the table.
    match (procedure.name.as_str(), parameter.name.as_str(), form) {
        (_, _, "destination" | "source" | "root") => Some("rank"),
        (_, _, "tag-send" | "tag-receive") => Some("tag"),
        ("MPI_Remove_error_class" | "MPI_Remove_error_code" | "MPI_Remove_error_string", ..) => Some("code"),
        ("MPI_Status_get_source" | "MPI_Status_set_source", "source", _) => Some("rank"),
        ("MPI_Status_get_tag" | "MPI_Status_set_tag", "tag", _) => Some("tag"),
        ("MPI_Status_get_error" | "MPI_Status_set_error", "err" | "error", _) => Some("code"),
        _ => None,
    }
}
