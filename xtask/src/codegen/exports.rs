//! `crates/abi/src/generated`: the exports of the C interface. Each procedure is one function and two exports of it,
//! MPI_X and PMPI_X (two definitions, since rustc hides assembler aliases in a cdylib).

use super::Files;
use super::spec::{HANDLE_TYPES, Parameter, Procedure, Spec, bare, class_of, split_form};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How an argument arrives in the body.
pub enum Arrival {
    /// As a parameter of this type.
    Given(String),
    /// As a part of another argument, or not at all.
    Swallowed,
}

/// One argument on its way from C to the body.
pub struct Argument {
    pub name: String,
    pub arrival: Arrival,
    /// The statement that makes the value, if one is needed.
    prepare: Option<String>,
    /// A check that needs other arguments.
    check: Option<String>,
    /// What is handed to the body.
    pass: String,
    is_communicator: bool,
}

/// The Rust type of a C parameter.
pub fn raw_type(c: &str) -> Result<String> {
    let handle = |name: &str| HANDLE_TYPES.iter().any(|(one, _)| *one == name);
    let is_function = |name: &str| name.ends_with("_function") || name.ends_with("_function_c");
    let base = bare(c);
    let constant = c.starts_with("const ");
    let scalar = match base {
        "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => "c_int",
        "char" => "c_char",
        "void" => "c_void",
        "MPI_Aint" | "MPI_Offset" | "MPI_Count" => "i64",
        "MPI_Status" => "StatusRecord",
        name if handle(name) || is_function(name) => "usize",
        _ => bail!("no Rust type for the C type {c}"),
    };
    let depth = c.matches('*').count() + c.matches("[]").count();
    if is_function(base) {
        return Ok("usize".to_owned());
    }
    Ok(match depth {
        0 => scalar.to_owned(),
        1 if c.ends_with("[][3]") => "*const [c_int; 3]".to_owned(),
        1 if constant => format!("*const {scalar}"),
        1 => format!("*mut {scalar}"),
        _ => "*mut c_void".to_owned(),
    })
}

/// The arguments of a procedure that has a body.
pub fn arguments(procedure: &Procedure) -> Result<Vec<Argument>> {
    let communicator = procedure
        .params
        .iter()
        .find(|parameter| parameter.c == "MPI_Comm" && parameter.form.as_deref() == Some("object"))
        .map(|parameter| parameter.name.clone());
    let mut swallowed = Vec::new();
    for parameter in &procedure.params {
        if let ("string-out", more) = split_form(parameter.form.as_deref().unwrap_or("")) {
            swallowed.extend(more.get(1).map(|name| (*name).to_owned()));
        }
    }
    procedure
        .params
        .iter()
        .filter(|parameter| parameter.c != "...")
        .map(|parameter| {
            if swallowed.contains(&parameter.name) {
                return Ok(Argument {
                    name: parameter.name.clone(),
                    arrival: Arrival::Swallowed,
                    prepare: None,
                    check: None,
                    pass: String::new(),
                    is_communicator: false,
                });
            }
            let mut argument = argument(parameter, communicator.as_deref())
                .with_context(|| format!("{}, parameter {}", procedure.name, parameter.name))?;
            let is_taken =
                procedure.with.iter().any(|expression| words(expression).any(|word| word == argument.name));
            if is_taken || !parameter.pass {
                argument.arrival = Arrival::Swallowed;
            }
            let mut forms = procedure.params.iter().filter_map(|other| other.form.as_deref());
            let is_used = forms.any(|form| split_form(form).1.contains(&parameter.name.as_str()));
            if !parameter.pass && !is_used {
                // The check is all that is wanted.
                let made = argument.prepare.get_or_insert_default();
                write!(made, " let _ = &{};", argument.name)?;
            }
            Ok(argument)
        })
        .collect()
}

/// The names in an expression.
fn words(expression: &str) -> impl Iterator<Item = &str> {
    expression.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn argument(parameter: &Parameter, communicator: Option<&str>) -> Result<Argument> {
    let n = parameter.name.as_str();
    let raw = raw_type(&parameter.c)?;
    let (form, more) = split_form(parameter.form.as_deref().context("no \"as\"")?);
    let class = class_of(&parameter.c).unwrap_or("");
    let length = more.first().copied().unwrap_or("0");
    let is_int = raw.ends_with("c_int");
    let width = if is_int { "int" } else { "large" };
    let wide = if is_int { format!("i64::from({n})") } else { n.to_owned() };
    // (type in the body, statement, check, value passed)
    let let_ = |value: String| Some(format!("let {n} = {value};"));
    let let_mut = |value: String| Some(format!("let mut {n} = {value};"));
    let plain = |kind: &str, pass: String| (kind.to_owned(), None, None, pass);
    let out = |kind: &str, value: String| (kind.to_owned(), let_(value), None, n.to_owned());
    let checked = |check: String| ("i32".to_owned(), None, Some(check), n.to_owned());
    let comm = || communicator.context("the check needs a communicator among the arguments");
    let (kind, prepare, check, pass) = match form {
        "object" | "request" => (
            format!("&Arc<{class}>"),
            let_(format!("handles::get::<{class}>({n}, \"{n}\")?")),
            None,
            format!("&{n}"),
        ),
        "object?" | "request?" => (
            format!("Option<&Arc<{class}>>"),
            let_(format!("handles::get_nullable::<{class}>({n}, \"{n}\")?")),
            None,
            format!("{n}.as_deref()"),
        ),
        "committed" => (
            "&Arc<Datatype>".to_owned(),
            let_(format!("arguments::committed({n}, \"{n}\")?")),
            None,
            format!("&{n}"),
        ),
        "handle" => plain(&format!("Handle<{class}>"), format!("Handle::new({n})")),
        "handles" => out(
            &format!("&[Handle<{class}>]"),
            format!("arguments::slice({n}.cast::<Handle<{class}>>(), {length}, \"{n}\")?"),
        ),
        "handle-array" => plain(&format!("HandleArray<{class}>"), format!("HandleArray::new({n})")),
        "inout-handle" => {
            out(&format!("InOutHandle<{class}>"), format!("InOutHandle::<{class}>::new({n}, \"{n}\")?"))
        }
        "out-handle" => {
            out(&format!("OutHandle<{class}>"), format!("OutHandle::<{class}>::new({n}, \"{n}\")?"))
        }
        "out-handles" => (
            format!("&mut OutHandles<'_, {class}>"),
            let_mut(format!("OutHandles::<{class}>::new({n}, {length}, \"{n}\")?")),
            None,
            format!("&mut {n}"),
        ),
        "request-pointer" => (
            "&Arc<Request>".to_owned(),
            let_(format!("arguments::request_at({n}, \"{n}\")?")),
            None,
            format!("&{n}"),
        ),
        "request-inout" => (
            "&mut RequestInOut".to_owned(),
            let_mut(format!("RequestInOut::new({n}, \"{n}\")?")),
            None,
            format!("&mut {n}"),
        ),
        "requests" => {
            let pointer = if raw.starts_with("*const") { format!("{n}.cast_mut()") } else { n.to_owned() };
            (
                "Requests".to_owned(),
                let_(format!("Requests::new({pointer}, {length}, \"{n}\")?")),
                None,
                n.to_owned(),
            )
        }
        "message-inout" => out("MessageInOut", format!("MessageInOut::new({n}, \"{n}\")?")),
        "buffer" => (
            "Address".to_owned(),
            let_(format!("Address::new({n})")),
            more.get(1).map(|datatype| format!("arguments::buffer({n}, {length}, &{datatype}, \"{n}\")?;")),
            n.to_owned(),
        ),
        "count" => out("i64", format!("arguments::count({wide}, \"{n}\")?")),
        "count-any" | "long" => plain("i64", wide),
        "counts" => {
            out("Ints<'_>", format!("IntArray::{width}({n}).with_length({length} as usize, \"{n}\")?"))
        }
        "count-array" => plain("IntArray", format!("IntArray::{width}({n})")),
        "int" => plain("i32", n.to_owned()),
        "logical" => plain("bool", format!("{n} != 0")),
        "word" => plain("usize", format!("{n}.expose_provenance()")),
        "ints" => out("&[i32]", format!("arguments::slice({n}, {length}, \"{n}\")?")),
        "ranges" => out("&[[i32; 3]]", format!("arguments::slice({n}, {length}, \"{n}\")?")),
        "destination" => checked(format!("arguments::destination({n}, &{}, \"{n}\")?;", comm()?)),
        "source" => checked(format!("arguments::source({n}, &{}, \"{n}\")?;", comm()?)),
        "root" => checked(format!("arguments::root({n}, &{}, \"{n}\")?;", comm()?)),
        "tag-send" => checked(format!("arguments::tag_send({n}, \"{n}\")?;")),
        "tag-receive" => checked(format!("arguments::tag_receive({n}, \"{n}\")?;")),
        "out-int" => out("Out<i32>", format!("Out::<i32>::new({n}, \"{n}\")?")),
        "out-long" => out("Out<i64>", format!("Out::<i64>::new({n}, \"{n}\")?")),
        "out-logical" => out("Out<bool>", format!("Out::<bool>::new({n}, \"{n}\")?")),
        "out-word" => out("Out<usize>", format!("Out::<usize>::new({n}.cast(), \"{n}\")?")),
        "inout-int" => out("InOut<i32>", format!("InOut::<i32>::new({n}, \"{n}\")?")),
        "inout-long" => out("InOut<i64>", format!("InOut::<i64>::new({n}, \"{n}\")?")),
        "out-count" => out("IntOut", format!("IntOut::{width}({n}, \"{n}\")?")),
        "inout-count" => out("IntInOut", format!("IntInOut::{width}({n}, \"{n}\")?")),
        "out-ints" | "out-longs" => (
            format!("&mut OutSlice<'_, {}>", if form == "out-ints" { "i32" } else { "i64" }),
            let_mut(format!("OutSlice::new({n}, {length}, \"{n}\")?")),
            None,
            format!("&mut {n}"),
        ),
        "status-out" => plain("StatusOut", format!("StatusOut::new({n})")),
        "statuses-out" => plain("StatusesOut", format!("StatusesOut::new({n})")),
        "status-in" => out("&StatusRecord", format!("arguments::status({n}, \"{n}\")?")),
        "status-inout" => out("&mut StatusRecord", format!("arguments::status_mut({n}, \"{n}\")?")),
        "string-in" => out("&[u8]", format!("arguments::string({n}, \"{n}\")?")),
        "string-out" if more.is_empty() => plain("StringOut", format!("StringOut::unsized_at({n})")),
        "string-out" => {
            let place = more.get(1).map_or("None".to_owned(), |name| format!("Some({name})"));
            out("StringOut", format!("StringOut::new({n}, {length} as usize, {place}, \"{n}\")?"))
        }
        "function" => {
            let kind = format!("Function<callbacks::{}>", bare(&parameter.c));
            plain(&kind, format!("Function::new({n})"))
        }
        "pointer" if raw.starts_with("*const") => {
            plain("*mut c_void", format!("{n}.cast_mut().cast::<c_void>()"))
        }
        "pointer" => plain("*mut c_void", format!("{n}.cast::<c_void>()")),
        _ => bail!("unknown \"as\": {form}"),
    };
    Ok(Argument {
        name: n.to_owned(),
        arrival: Arrival::Given(kind),
        prepare,
        check,
        pass,
        is_communicator: parameter.c == "MPI_Comm" && form == "object",
    })
}

/// Adds the files.
pub fn rust(spec: &Spec, files: &mut Files) -> Result<()> {
    let mut modules: BTreeMap<String, String> = BTreeMap::new();
    for procedure in &spec.procedures {
        let module = match procedure.body.as_deref().and_then(|body| body.split_once("::")) {
            Some((module, _)) => module.to_owned(),
            None if procedure.name.starts_with("MPI_T_") => "missing_tool".to_owned(),
            None if procedure.name.starts_with("MPI_File") => "missing_file".to_owned(),
            None => "missing_other".to_owned(),
        };
        let text = modules.entry(module).or_default();
        export(procedure, text).with_context(|| format!("generating {}", procedure.name))?;
    }
    modules.insert("callbacks".to_owned(), callbacks(spec)?);
    let mut index = String::from(
        "//! The exports of the C interface. Generated by `cargo xtask codegen` from spec/procedures.jsonl.\n//!\n\
         //! SAFETY, for every block here: a C program that calls a procedure promises what the standard asks of its\n\
         //! arguments: buffers, arrays and strings of the lengths that the other arguments say, and initialised handle\n\
         //! variables. What can be checked (null pointers, handles, ranges) is checked before it is used.\n\
         #![allow(non_snake_case, non_camel_case_types, unused_unsafe, unused_imports, clippy::missing_safety_doc)]\n\
         #![allow(clippy::undocumented_unsafe_blocks, clippy::too_many_arguments, clippy::redundant_closure_call)]\n\
         #![allow(clippy::needless_question_mark, unused_parens)]\n\n",
    );
    for (module, text) in modules {
        writeln!(index, "pub mod {module};")?;
        let head = if module == "callbacks" {
            "//! The types of the program's functions. Generated by `cargo xtask codegen` from spec/callbacks.jsonl.\n\n\
             use crate::arguments::StatusRecord;\nuse std::ffi::{c_int, c_void};\n"
                .to_owned()
        } else {
            let calls = match module.as_str() {
                name if name.starts_with("missing_") || name == "handle" => String::new(),
                "tool" => "use crate::calls::tool as bodies;\nuse crate::tool::Place;\n".to_owned(),
                "pt2pt" => "use crate::calls::{again, pt2pt as bodies};\n".to_owned(),
                name => format!("use crate::calls::{name} as bodies;\n"),
            };
            format!(
                "//! Generated by `cargo xtask codegen` from spec/procedures.jsonl.\n\n\
                 use crate::arguments::{{self, *}};\nuse crate::call::Call;\n{calls}use crate::generated::callbacks;\n\
                 use crate::handles;\nuse crate::objects::*;\nuse parnass_mpi::Result;\nuse parnass_mpi::constants::*;\n\
                 use std::ffi::{{c_char, c_int, c_void}};\n"
            )
        };
        files.insert(format!("crates/abi/src/generated/{module}.rs").into(), head + &text);
    }
    files.insert("crates/abi/src/generated/mod.rs".into(), index);
    Ok(())
}

/// One procedure: the function and its two exports.
fn export(procedure: &Procedure, text: &mut String) -> Result<()> {
    let name = &procedure.name;
    let inner = name.trim_start_matches("MPI_").to_lowercase();
    let result = raw_type(&procedure.returns).or_else(|error| match procedure.returns.as_str() {
        "double" => Ok("f64".to_owned()),
        _ => Err(error),
    })?;
    let parameters: Vec<(String, String)> = procedure
        .params
        .iter()
        .filter(|parameter| parameter.c != "...")
        .map(|parameter| Ok((parameter.name.clone(), raw_type(&parameter.c)?)))
        .collect::<Result<_>>()?;
    let signature: Vec<String> = parameters.iter().map(|(name, kind)| format!("{name}: {kind}")).collect();
    let signature = signature.join(", ");
    let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");

    if procedure.again {
        let function = procedure.body.as_deref().and_then(|body| body.split_once("::")).context("no body")?.1;
        let given: Vec<String> = parameters
            .iter()
            .map(|(name, kind)| match (name.as_str(), kind.as_str()) {
                ("count", "c_int") => "i64::from(count)".to_owned(),
                _ => name.clone(),
            })
            .collect();
        writeln!(
            text,
            "\nunsafe extern \"C\" fn {inner}({signature}) -> {result} {{\n    \
             match unsafe {{ again::{function}(\"{name}\", {}) }} {{\n        Some(code) => code,\n        \
             None => unsafe {{ {inner}_checked({names}) }},\n    }}\n}}",
            given.join(", ")
        )?;
        writeln!(text, "\n#[inline(never)]\nunsafe fn {inner}_checked({signature}) -> {result} {{")?;
    } else {
        writeln!(text, "\nunsafe extern \"C\" fn {inner}({signature}) -> {result} {{")?;
    }
    text.push_str(&implementation(procedure, &parameters)?);
    writeln!(text, "}}\n")?;
    for prefix in ["", "P"] {
        writeln!(
            text,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{name}({signature}) -> {result} {{\n    \
             unsafe {{ {inner}({names}) }}\n}}"
        )?;
    }
    Ok(())
}

fn implementation(procedure: &Procedure, parameters: &[(String, String)]) -> Result<String> {
    let name = &procedure.name;
    let mut text = String::new();
    let enter = match procedure.when.as_deref() {
        Some("any") => "enter_any_time",
        None => "enter",
        Some(other) => bail!("unknown \"when\": {other}"),
    };
    // The first communicator tells whose error handler runs.
    let communicator = procedure.params.iter().find(|parameter| parameter.c == "MPI_Comm");
    let communicator_place = procedure
        .params
        .iter()
        .find(|parameter| parameter.c == "MPI_Comm *" && parameter.form.as_deref() == Some("inout-handle"));
    // Without one, the window does.
    let window = procedure
        .params
        .iter()
        .find(|parameter| parameter.c == "MPI_Win" && parameter.form.is_some() && communicator.is_none());
    // Errors of files go to the file's handler, and where there is none yet to that of MPI_FILE_NULL (MPI 5.0, section 14.7).
    let file = file_handler(procedure);
    let raise = if file.is_some() {
        "fail_on_file(handler, error)"
    } else if communicator.is_some() || communicator_place.is_some() {
        "fail_on(handler, error)"
    } else if window.is_some() {
        "fail_on_window(handler, error)"
    } else {
        "fail(error)"
    };
    if let Some(handler) = file {
        writeln!(text, "    let handler = {handler};")?;
    } else if let Some(parameter) = window {
        writeln!(text, "    let handler = {};", parameter.name)?;
    } else if let Some(parameter) = communicator {
        writeln!(text, "    let handler = {};", parameter.name)?;
    } else if let Some(parameter) = communicator_place {
        writeln!(
            text,
            "    let handler = if {0}.is_null() {{ 0 }} else {{ unsafe {{ *{0} }} }};",
            parameter.name
        )?;
    }
    let Some((module, function)) = procedure.body.as_deref().and_then(|body| body.split_once("::")) else {
        let unused: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
        writeln!(text, "    let _ = ({});", unused.join(", "))?;
        if name.starts_with("MPI_T_") {
            let code = if name == "MPI_T_init_thread" {
                "MPI_T_ERR_CANNOT_INIT"
            } else {
                "MPI_T_ERR_NOT_INITIALIZED"
            };
            writeln!(text, "    {code}")?;
        } else {
            // A bad handle is told first. (An info argument may be the null handle.)
            let mut handles = String::new();
            for parameter in &procedure.params {
                match class_of(&parameter.c) {
                    Some(class) if class != "Info" && bare(&parameter.c) == parameter.c => {
                        writeln!(handles, "        handles::get::<{class}>({0}, \"{0}\")?;", parameter.name)?;
                    }
                    _ => {}
                }
            }
            writeln!(
                text,
                "    let call = Call::{enter}(\"{name}\");\n    let result = (|| -> Result<()> {{"
            )?;
            writeln!(text, "{handles}        Err(call.missing())\n    }})();\n    match result {{")?;
            writeln!(text, "        Ok(()) => call.succeed(),\n        Err(error) => call.{raise},\n    }}")?;
        }
        return Ok(text);
    };
    if module == "handle" {
        let (parameter, kind) = &parameters[0];
        match (function, kind.as_str()) {
            ("toint", "usize") => writeln!(text, "    {parameter} as c_int")?,
            ("fromint", "c_int") => writeln!(text, "    {parameter} as u32 as usize")?,
            _ => bail!("unknown body: handle::{function}"),
        }
        // The communicator of MPI_Comm_toint raises no error.
        return Ok(text.replace("    let handler = comm;\n", ""));
    }
    if module == "tool" {
        // These call no error handler, and take null pointers in their stride (MPI 5.0, section 15.3.10).
        let given: Vec<String> = parameters
            .iter()
            .map(|(name, kind)| match kind {
                kind if kind.starts_with("*const") => format!("Place::new({name}.cast_mut())"),
                kind if kind.starts_with('*') => format!("Place::new({name})"),
                _ => name.clone(),
            })
            .collect();
        writeln!(text, "    match bodies::{function}({}) {{", given.join(", "))?;
        writeln!(text, "        Ok(()) => MPI_SUCCESS,\n        Err(code) => code,\n    }}")?;
        return Ok(text);
    }
    let arguments = arguments(procedure)?;
    writeln!(text, "    let call = Call::{enter}(\"{name}\");")?;
    let mut given = vec!["&call".to_owned()];
    given.extend(procedure.with.iter().map(|expression| format!("bodies::{expression}")));
    let mut steps = String::new();
    let (first, later): (Vec<&Argument>, Vec<&Argument>) =
        arguments.iter().partition(|argument| argument.is_communicator);
    for argument in first.iter().chain(&later) {
        if let Some(prepare) = &argument.prepare {
            writeln!(steps, "        {prepare}")?;
        }
    }
    for argument in &arguments {
        if let Some(check) = &argument.check {
            writeln!(steps, "        {check}")?;
        }
        if let Arrival::Given(_) = argument.arrival {
            given.push(argument.pass.clone());
        }
    }
    let call = format!("bodies::{function}({})", given.join(", "));
    if procedure.returns != "int" {
        return Ok(format!("{text}{}    {call}\n", steps.replace("        ", "    ")));
    }
    writeln!(text, "    let result = (|| -> Result<()> {{ unsafe {{\n{steps}        {call}\n    }} }})();")?;
    writeln!(
        text,
        "    match result {{\n        Ok(()) => call.succeed(),\n        Err(error) => call.{raise},\n    }}"
    )?;
    Ok(text)
}

/// The expression for the file whose error handler hears of errors; none for a procedure that has nothing to do with files.
fn file_handler(procedure: &Procedure) -> Option<String> {
    if procedure.body.as_deref().is_some_and(|body| body.starts_with("handle::")) {
        return None;
    }
    for parameter in &procedure.params {
        match parameter.c.as_str() {
            "MPI_File" => return Some(parameter.name.clone()),
            "MPI_File *" if parameter.form.as_deref() == Some("inout-handle") => {
                return Some(format!(
                    "if {0}.is_null() {{ 0 }} else {{ unsafe {{ *{0} }} }}",
                    parameter.name
                ));
            }
            _ => {}
        }
    }
    let opens = ["MPI_File_open", "MPI_File_delete", "MPI_Register_datarep", "MPI_Register_datarep_c"];
    opens.contains(&procedure.name.as_str()).then(|| "MPI_FILE_NULL".to_owned())
}

fn callbacks(spec: &Spec) -> Result<String> {
    let mut text = String::new();
    for callback in &spec.callbacks {
        let mut types = Vec::new();
        for parameter in callback.params.split(',').map(str::trim) {
            if parameter == "..." {
                types.push("...".to_owned());
                continue;
            }
            // The name is what follows the last space or star.
            let end = parameter.rfind([' ', '*']).map_or(0, |place| place + 1);
            types.push(raw_type(parameter[..end].trim())?);
        }
        let result = match callback.returns.as_str() {
            "void" => String::new(),
            other => format!(" -> {}", raw_type(other)?),
        };
        write!(
            text,
            "\n/// {0} of the standard.\npub type {0} = unsafe extern \"C\" fn({1}){result};\n",
            callback.name,
            types.join(", ")
        )?;
    }
    Ok(text)
}
