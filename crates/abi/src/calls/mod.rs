//! The bodies of the MPI procedures: one function a procedure, called by the generated wrappers.
//!
//! # Writing a body
//!
//! Which procedure has which body stands in `spec/procedures.jsonl` (`"body": "pt2pt::send"` is
//! [`pt2pt::send`]). The int form and the large-count form (`_c`) share one body. Procedures that differ in a constant, or in
//! what is done at the end, share one too: `"with"` says what each gives it (`"with": ["How::Start(request)"]`), before the parameters.
//! A parameter with `"pass": false` is checked, but not given. The table says with `"as"` how each
//! parameter arrives; a stub with the right signature is written into the module by `cargo xtask codegen --stubs` for
//! every body that is not there yet. A body whose text contains `call.missing()` counts as not implemented (and is
//! listed by `parnass info --missing`): replace it, run `cargo xtask codegen`, done.
//!
//! A body returns `parnass_mpi::Result<()>`; the wrapper hands an error to the error handler of the communicator
//! among the arguments (of the file, for those of files), else of the one given to [`Call::raise_on`](crate::call::Call::raise_on), else of MPI_COMM_SELF.
//! The message of an error says what was wrong with the value, what was allowed and what to do; call, rank and host are
//! added.
//!
//! | `as` | arrives as | checked before the body |
//! |---|---|---|
//! | `object` | `&Arc<Communicator>`, `&Arc<Datatype>`, `&Arc<Group>`, `&Arc<Op>`, `&Arc<Info>`, `&Arc<Errhandler>` | a live or predefined handle |
//! | `object?` | `Option<&Arc<_>>` | live, or the null handle (`None`) |
//! | `committed` | `&Arc<Datatype>` | live and committed |
//! | `handle` | [`Handle<_>`](crate::arguments::Handle) | nothing: `get(name)?` or `committed(name)?` where it is significant |
//! | `handles(n)` | `&[Handle<_>]` | not null unless n is 0 |
//! | `handle-array` | [`HandleArray<_>`](crate::arguments::HandleArray) | nothing: `with_length(n, name)?` |
//! | `inout-handle` | [`InOutHandle<_>`](crate::arguments::InOutHandle) | live; `release()` frees the handle and writes null |
//! | `out-handle` | [`OutHandle<_>`](crate::arguments::OutHandle) | not null; `set(Arc)?`, `set_null()`, `set_raw(value)` |
//! | `out-handles(n)` | `&mut OutHandles<_>` | not null unless n is 0 |
//! | `request`, `request?` | `&Arc<Request>`, `Option<&Arc<Request>>` | live (or MPI_REQUEST_NULL) |
//! | `request-pointer` | `&Arc<Request>` | the pointer not null, the request live (MPI_Cancel) |
//! | `request-inout` | `&mut RequestInOut` | live or null; `get()`, `release()` writes MPI_REQUEST_NULL |
//! | `requests(n)` | [`Requests`](crate::arguments::Requests) | not null unless n is 0; the handles are not checked |
//! | `message-inout` | `MessageInOut` | live or MPI_MESSAGE_NO_PROC; `take()` |
//! | `buffer` | [`Address`](crate::arguments::Address) | nothing |
//! | `buffer(count,datatype)` | `Address` | not MPI_IN_PLACE; not null, unless the count is 0 or the datatype has absolute addresses |
//! | `count` | `i64` | not negative (in both forms) |
//! | `count-any` | `i64` | nothing (collectives: not significant everywhere) |
//! | `counts(n)` | [`Ints`](crate::arguments::Ints) | not null unless n is 0; the elements are not checked |
//! | `count-array` | [`IntArray`](crate::arguments::IntArray) | nothing: `with_length(n, name)?` gives `Ints` |
//! | `int`, `long`, `logical`, `word` | `i32`, `i64`, `bool`, `usize` | nothing |
//! | `ints(n)`, `ranges(n)` | `&[i32]`, `&[[i32; 3]]` | not null unless n is 0 |
//! | `destination`, `source`, `root` | `i32` | a rank of the communicator or the special values allowed |
//! | `tag-send`, `tag-receive` | `i32` | the range |
//! | `out-int`, `out-long`, `out-logical`, `out-word` | [`Out`](crate::arguments::Out)`<i32, i64, bool, usize>` | not null |
//! | `inout-int`, `inout-long` | [`InOut`](crate::arguments::InOut) | not null |
//! | `out-count` | [`IntOut`](crate::arguments::IntOut) | not null; `set` writes MPI_UNDEFINED where an int is too small, `set_checked` is MPI_ERR_VALUE_TOO_LARGE |
//! | `inout-count` | [`IntInOut`](crate::arguments::IntInOut) | not null |
//! | `out-ints(n)`, `out-longs(n)` | `&mut OutSlice` | not null unless n is 0 |
//! | `status-out`, `statuses-out(n)` | [`StatusOut`](crate::arguments::StatusOut), [`StatusesOut`](crate::arguments::StatusesOut) | null is MPI_STATUS(ES)_IGNORE: `set` does nothing then |
//! | `status-in`, `status-inout` | `&StatusRecord`, `&mut StatusRecord` | not null |
//! | `string-in` | `&[u8]` | not null; without the terminating zero |
//! | `string-out(MAX,resultlen)` | [`StringOut`](crate::arguments::StringOut) | not null; takes the length's place with it, cuts and terminates |
//! | `string-out` | `StringOut` | use `set_within(text, capacity)` |
//! | `function` | [`Function`](crate::arguments::Function)`<callback type>` | nothing: the values 0 and 1 are predefined |
//! | `pointer` | `*mut c_void` | nothing |
//!
//! Procedures with `"when": "any"` may be called before MPI_Init and after MPI_Finalize: their bodies use
//! `call.process_if_running()`. In all others `call.process()` is there.
//!
//! The handle of an object, for a callback: `Communicator::table().handle_of(&communicator)`.

// As many as the standard gives them.
#![allow(clippy::too_many_arguments)]

pub mod abi;
pub mod again;
pub mod attribute;
pub mod buffer;
pub mod coll;
pub mod comm;
pub mod datatype;
pub mod dynamic;
pub mod environment;
pub mod error;
pub mod file;
pub mod group;
pub mod info;
pub mod neighbor;
pub mod op;
pub mod pack;
pub mod partitioned;
pub mod process;
pub mod pt2pt;
pub mod request;
pub mod requests;
pub mod rma;
pub mod session;
pub mod tool;
pub mod topology;
pub mod window;

/// What every body needs.
pub mod prelude {
    pub use crate::arguments::*;
    pub use crate::call::Call;
    pub use crate::generated::callbacks;
    pub use crate::handles::{Class, Held};
    pub use crate::objects::*;
    pub use parnass_mpi::constants::*;
    pub use parnass_mpi::{Error, Result};
    pub use std::ffi::c_void;
    pub use std::sync::Arc;
}
