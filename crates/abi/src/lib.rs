//! The C interface of MPI 5.0: the exports, the handles, the checks of arguments and the hand-over of errors.
//!
//! The only room that knows C. What it does for one call stands in `generated/`, made by `cargo xtask codegen` from
//! `spec/procedures.jsonl`; what a call means stands in `parnass-mpi`; between the two lie the bodies in [`calls`].

pub mod arguments;
pub mod assemble;
pub mod call;
pub mod calls;
pub mod errors;
pub mod extensions;
#[rustfmt::skip]
pub mod generated;
pub mod handles;
mod messages;
pub mod objects;
pub mod recovery;
pub mod removed;
pub mod state;
pub mod tool;
