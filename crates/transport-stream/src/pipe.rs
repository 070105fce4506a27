//! What a sibling gives: connections that take and give bytes in order, and somebody who makes them and looks after them.

use crate::seal::Keys;
use parnass_base::UserAddress;
use parnass_base::socket::Part;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Memory of this process that peers may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// What its carrier calls it.
    pub name: u64,
    /// What a peer must be told to read it.
    pub remote: Remote,
}

/// Where memory of a peer begins that may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    pub key: u64,
    pub address: u64,
}

/// A connection to one peer, which has proved to be of the job. Nothing blocks.
pub trait Pipe: fmt::Debug + Send + Sync + 'static {
    /// Sends as many of the first bytes of `parts` as it takes now; they may be reused at once.
    ///
    /// # Errors
    /// `WouldBlock` when it takes nothing now; `BrokenPipe` when the peer reads no more; anything else ends it.
    fn send(&self, parts: &[Part<'_>]) -> io::Result<usize>;

    /// Receives, first into `length` bytes of the user at `address`, then into `buffer`; fewer than there is room
    /// for only when nothing more is there. 0: the peer will send nothing more.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there now; anything else ends it.
    fn receive(&self, address: UserAddress, length: usize, buffer: &mut [u8]) -> io::Result<usize>;

    /// Its two ends, for messages.
    fn way(&self) -> &str;

    /// The longest run of memory that either side can read out of the other's at once; 0: none can.
    fn reads(&self) -> usize {
        0
    }

    /// Begins to read `length` bytes of the peer's memory into memory of the user at `target`. [`Sight::Read`] tells when
    /// that is over, under this name, and not before.
    ///
    /// # Errors
    /// It has not begun, and nothing will be told.
    fn read(&self, name: usize, from: Remote, target: UserAddress, length: usize) -> io::Result<()> {
        let _ = (name, from, target, length);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Nothing more will be sent.
    fn finish(&self);

    /// Breaks it, as a fault of the network would: for tests.
    fn cut(&self);
}

/// What a look at the connections has found.
pub enum Sight<P> {
    /// A connection to this peer has come up; where it is encrypted, its keys.
    Up(u32, P, Option<Keys>),
    /// The connection with this number may have something, or has ended.
    Readable(usize),
    /// The connection with this number, which took no more, takes again.
    Writable(usize),
    /// The read with this name is over: all is in its place, or it has failed.
    Read(usize, io::Result<()>),
}

/// Makes the connections of a process and looks after them.
pub trait Carrier: fmt::Debug + Send + Sync + Sized + 'static {
    /// A connection.
    type Pipe: Pipe;

    /// The longest payload that is sent before anybody has asked for it, in bytes; at most what a frame may bring.
    const STREAM_BYTES: usize = 64 << 10;

    /// The same of a sender that could do something else while its target is asked.
    const UNASKED_BYTES: usize = Self::STREAM_BYTES;

    /// Whether who arms must look until [`Carrier::is_settled`]: then the keeper does it for those who do not look.
    const SETTLES: bool = false;

    /// Whether [`Carrier::disarm`] takes back what [`Carrier::arm`] has said.
    const DISARMS: bool = false;

    /// Asks for a connection to `peer`. When there is one, [`crate::Streams::establish`] or [`Sight::Up`] says so.
    fn connect(&self, peer: u32);

    /// Tells that the connection to `peer` is lost, as the one whose two ends are `way`.
    fn lost(&self, peer: u32, error: io::Error);

    /// From now on [`Carrier::look`] tells of this connection under `number`.
    ///
    /// # Errors
    /// What the kernel says.
    fn watch(&self, pipe: &Self::Pipe, number: usize) -> io::Result<()>;

    /// Whether the connection has taken no more, and it is to be told when it does.
    fn block(&self, pipe: &Self::Pipe, number: usize, blocked: bool);

    /// Nothing more is told of this connection.
    fn forget(&self, pipe: &Self::Pipe);

    /// Lets peers read `length` bytes of the user at `address`, until [`Carrier::close_region`].
    ///
    /// # Errors
    /// That is not possible, or not now.
    fn open_region(&self, address: UserAddress, length: usize) -> io::Result<Region> {
        let _ = (address, length);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Nobody may read this region any more.
    fn close_region(&self, name: u64) {
        let _ = name;
    }

    /// Returns when no read from `peer` writes to this process's memory any more; none is told of after that.
    fn end_reads(&self, peer: u32) {
        let _ = peer;
    }

    /// [`Carrier::look`] need not tell of this connection any more, until [`Carrier::rejoin`] or [`Carrier::arm`]: it is looked at by
    /// itself. Nothing is done if, when none of these can come between, `is_needed` says so. One at a time.
    fn set_apart(&self, pipe: &Arc<Self::Pipe>, number: usize, is_needed: &dyn Fn() -> bool) {
        let _ = (pipe, number, is_needed);
    }

    /// The connection of which a look does not tell.
    fn apart(&self) -> Option<usize> {
        None
    }

    /// A look tells of all connections again.
    fn rejoin(&self) {}

    /// Looks at all connections, but for one that is set apart.
    fn look(&self, tell: &mut dyn FnMut(Sight<Self::Pipe>));

    /// From now on the next arrival, or one that is there, wakes the keeper. None is set apart any more.
    fn arm(&self);

    /// From now on arrivals do not wake the keeper.
    fn disarm(&self) {}

    /// Whether something waits for a look besides what arrives.
    fn wants_look(&self) -> bool {
        false
    }

    /// Whether a look after [`Carrier::arm`] has left nothing behind.
    fn is_settled(&self) -> bool {
        true
    }

    /// All connections are over; returns when the peers know that too, those that have said goodbye first among them, or at `deadline`.
    fn part(&self, deadline: std::time::Instant) {
        let _ = deadline;
    }

    /// Processes of other worlds are known now that were not before: strangers that wait may be of them.
    fn acquainted(&self) {}

    /// Wakes the keeper.
    fn ring(&self);

    /// Wakes the keeper after so long, and not when an earlier call would have: it calls [`crate::Streams::remind`].
    fn ring_after(&self, time: std::time::Duration);
}
