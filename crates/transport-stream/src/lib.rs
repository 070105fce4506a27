//! What the networks over streams of bytes have in common. A sibling gives the connections ([`Pipe`]) and looks after
//! them ([`Carrier`]); everything that is said over them, who may speak, and what the layers above see is here.
//!
//! Reading order: `wire` and `proof`, what is said; `handshake`, who may speak; `seal`, what is encrypted; `interfaces`, by
//! which interfaces; `outgoing` and `incoming`, the two directions of a stream; `offers`, what the peer reads
//! where it lies; `pipe`, what a sibling gives; `peer`, with whom there may be streams; `link` and `lending`, the streams of a process; `apart`, the one that alone is looked at; `attendance`, when the keeper is told; `watch`, part of the
//! thread that keeps them; `books`, what is counted; `network`, what the layers above see.
#![forbid(unsafe_code)]

mod apart;
mod attendance;
mod books;
pub mod handshake;
pub mod incoming;
pub mod interfaces;
mod lending;
mod link;
mod network;
pub mod offers;
mod outgoing;
mod peer;
mod pipe;
pub mod proof;
pub mod seal;
mod timer;
#[rustfmt::skip]
#[expect(clippy::derivable_impls, reason = "generated: with other defaults it could not be derived")]
mod tuning;
mod watch;
pub mod wire;

pub use books::{Books, Refusals};
pub use handshake::Refusal;
pub use interfaces::{INTERFACE_VARIABLE, Selection};
pub use link::{Link, Loss, Out, Stage, Streams, lock};
pub use network::StreamNetwork;
pub use outgoing::Outgoing;
pub use peer::{Pair, Peer, pair_key, world_name};
pub use pipe::{Carrier, Pipe, Region, Remote, Sight};
pub use timer::Timer;
pub use tuning::Tuning;
pub use watch::Watch;
