//! Collective operations as schedules.
//!
//! A [`Problem`] says what one process knows of an operation; [`select`] chooses an [`Algorithm`] for it, by a
//! table; the algorithm gives a [`Schedule`]: steps that somebody else executes. Nothing here sends a message,
//! knows a datatype or an address, or keeps any state.
//!
//! One file per algorithm, grouped by operation; what intercommunicators need lies in [`inter`].
#![forbid(unsafe_code)]

mod algorithm;
mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod bcast;
mod board;
mod deal;
mod direct;
mod exscan;
mod gather;
mod inter;
mod ints;
mod neighbor;
mod nodes;
mod pieces;
mod problem;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;
mod schedule;
mod select;
mod shares;

pub use algorithm::{ALGORITHMS, Algorithm, Groups, Needs, named};
pub use ints::Ints;
pub use nodes::Nodes;
pub use problem::{Direct, Neighborhood, Operation, Part, Problem, Root, Shape, Vector};
pub use schedule::{
    BOARD_DEPTH, Builder, Element, Kind, Peer, Region, Runner, Schedule, Share, Slice, Span, Step, Wake,
    share,
};
pub use select::{Overrides, RULES, Rule, schedule, select};
