//! The Fortran bindings, from `spec/procedures.jsonl` and `spec/fortran.toml`: `fortran/*`, which `mpifort` compiles with
//! the compiler that is there.
//!
//! | file | what |
//! |---|---|
//! | `mpif.h` | constants and the types of functions |
//! | `mpi_types.F90` | what both modules share: kinds, constants that are no handles, handle types, the status |
//! | `mpi.F90`, `mpi_f08.F90` | the modules: handle constants and interfaces |
//! | `glue.c` | the bodies: each converts its arguments and calls the procedure of C |

mod glue;
mod modules;
mod table;
mod test_program;

use super::Files;
use super::spec::Spec;
use anyhow::Result;
use std::path::Path;

/// Adds the files.
pub fn generate(root: &Path, spec: &Spec, files: &mut Files) -> Result<()> {
    let table = table::Table::load(root, spec)?;
    files.insert("fortran/glue.c".into(), glue::c(&table)?);
    files.insert("fortran/mpif.h".into(), modules::mpif(spec, &table));
    files.insert("fortran/mpi_types.F90".into(), modules::types(spec, &table));
    files.insert("fortran/mpi.F90".into(), modules::mpi(spec, &table));
    files.insert("fortran/mpi_f08.F90".into(), modules::mpi_f08(spec, &table));
    for (name, text) in test_program::all(&table) {
        files.insert(format!("tests/programs/{name}").into(), text);
    }
    Ok(())
}
