//! The few exchanges of bytes from which communicators are made, as futures.
//!
//! The creation of a communicator is written as straight-line `async` code and run as an [`Activity`]: the same
//! code serves the blocking calls and the nonblocking ones. The only thing that such code ever awaits is the
//! completion of its own sends and receives, after which the activity is advanced again; so no waker is needed.

use crate::activity::Activity;
use crate::comm::{Communicator, Plane};
use crate::group::Group;
use crate::process::{Process, UserBytes};
use crate::request::{Operation, Request, Status};
use crate::{Error, Result};
use parnass_base::{Scratch, UserAddress};
use parnass_portals::ProcessId;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A future as an activity.
struct Steps(Pin<Box<dyn Future<Output = Result<Status>> + Send>>);

impl Activity for Steps {
    fn advance(&mut self, _process: &Process) -> Option<Result<Status>> {
        match self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
}

/// Runs `steps` in the background; the request completes when they are done.
pub(super) fn start(
    process: &Process,
    communicator: &Arc<Communicator>,
    steps: impl Future<Output = Result<()>> + Send + 'static,
) -> Arc<Request> {
    start_with_status(process, communicator, async move { steps.await.map(|()| Status::EMPTY) })
}

/// As [`start`], for steps that tell a status.
pub(crate) fn start_with_status(
    process: &Process,
    communicator: &Arc<Communicator>,
    steps: impl Future<Output = Result<Status>> + Send + 'static,
) -> Arc<Request> {
    Request::composite(process, communicator, Box::new(Steps(Box::pin(steps))))
}

/// Runs `steps` and waits for them.
pub(crate) fn run<T: Send + 'static>(
    process: &Process,
    communicator: &Arc<Communicator>,
    steps: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let place = Arc::new(Mutex::new(None));
    let result = place.clone();
    let request = start(process, communicator, async move {
        let value = steps.await?;
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        Ok(())
    });
    process.wait_until(None, || request.poll(process))?;
    let value = place.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(value.expect("steps that end without an error leave their value"))
}

/// A send or receive of the library's own bytes.
pub(crate) struct Transfer {
    process: Arc<Process>,
    operation: Operation,
    /// `None` once it is over. Memory of a transfer that is dropped before is leaked, since the NIC may still use it.
    memory: Option<Scratch>,
}

impl Future for Transfer {
    type Output = Result<Scratch>;

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        let transfer = &mut *self;
        match transfer.operation.poll(&transfer.process) {
            None => Poll::Pending,
            Some(outcome) => {
                let memory =
                    transfer.memory.take().expect("a transfer is polled until it is over, not longer");
                Poll::Ready(outcome.map(|_| memory))
            }
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            std::mem::forget(memory);
        }
    }
}

fn bytes_of(memory: &Scratch) -> UserBytes {
    match memory.len() {
        0 => UserBytes { address: UserAddress::NULL, length: 0 },
        length => UserBytes { address: memory.address(), length: length as u64 },
    }
}

pub(crate) fn contents(memory: &Scratch) -> Vec<u8> {
    let mut bytes = vec![0; memory.len()];
    memory.address().read(&mut bytes);
    bytes
}

/// Carries the exchanges of one creation: some members of a communicator, and a tag on its collective plane.
///
/// All exchanges over one channel happen in the same order at all members, so they may share the tag.
pub(crate) struct Channel {
    process: Arc<Process>,
    carrier: Arc<Communicator>,
    /// Who takes part, all of them peers of the carrier. Ranks in the methods' arguments are ranks in this group.
    members: Group,
    rank: i32,
    tag: u32,
}

impl Channel {
    /// Among all members of an intracommunicator. Draws the tag: to be called in the order of the program's calls.
    pub(crate) fn all(process: &Arc<Process>, carrier: &Arc<Communicator>) -> Channel {
        debug_assert!(!carrier.is_inter());
        Channel {
            process: process.clone(),
            carrier: carrier.clone(),
            members: carrier.group().clone(),
            rank: carrier.rank(),
            tag: carrier.next_collective_tag(),
        }
    }

    /// Among the peers of `carrier` that `members` names, with a tag that all of them know. A process that is not one of
    /// them can only [`Channel::swap`] with them.
    pub(super) fn some(
        process: &Arc<Process>,
        carrier: &Arc<Communicator>,
        members: Group,
        tag: u32,
    ) -> Channel {
        let rank = members.rank_of(process.me()).unwrap_or(0);
        Channel { process: process.clone(), carrier: carrier.clone(), members, rank, tag }
    }

    /// Among some members of this channel, this process one of them, after all exchanges of all members.
    pub(super) fn among(&self, members: Group) -> Channel {
        Channel::some(&self.process, &self.carrier, members, self.tag)
    }

    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    pub(crate) fn rank(&self) -> i32 {
        self.rank
    }

    pub(super) fn members(&self) -> &Group {
        &self.members
    }

    pub(super) fn member(&self, rank: i32) -> ProcessId {
        self.members.process(rank)
    }

    /// How many take part.
    pub(crate) fn size(&self) -> i32 {
        self.members.size()
    }

    fn peer(&self, rank: i32) -> i32 {
        self.carrier.rank_of(self.members.process(rank))
    }

    pub(crate) fn send(&self, target: i32, bytes: &[u8]) -> Result<Transfer> {
        let memory = Scratch::new(bytes.len());
        memory.address().write(bytes);
        self.send_memory(target, memory)
    }

    /// Sends all of `memory`.
    pub(crate) fn send_memory(&self, target: i32, memory: Scratch) -> Result<Transfer> {
        let (carrier, target) = (&self.carrier, self.peer(target));
        let operation =
            self.process.start_send_bytes(carrier, Plane::Collective, target, self.tag, bytes_of(&memory))?;
        Ok(Transfer { process: self.process.clone(), operation, memory: Some(memory) })
    }

    pub(crate) fn receive(&self, source: i32, length: usize) -> Result<Transfer> {
        let memory = Scratch::new(length);
        let (carrier, source) = (&self.carrier, self.peer(source));
        let operation = self.process.start_receive_bytes(
            carrier,
            Plane::Collective,
            source,
            self.tag,
            bytes_of(&memory),
        )?;
        Ok(Transfer { process: self.process.clone(), operation, memory: Some(memory) })
    }

    /// Sends `own` to `partner` and receives `length` bytes from it.
    pub(super) async fn swap(&self, partner: i32, own: &[u8], length: usize) -> Result<Vec<u8>> {
        let receive = self.receive(partner, length)?;
        let send = self.send(partner, own)?;
        let received = receive.await?;
        send.await?;
        Ok(contents(&received))
    }

    /// Gives everybody the bytes of the member `root`; all know the length. A binomial tree: ceil(log2 size) rounds.
    pub(crate) async fn broadcast(&self, root: i32, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let size = self.members.size();
        let place = (self.rank - root).rem_euclid(size);
        let mut bytes = bytes;
        // The parent of a place is the place without its lowest bit; its children are it plus the lower bits.
        let mut bit = 1;
        while bit < size && place & bit == 0 {
            bit <<= 1;
        }
        if place != 0 {
            let parent = (place - bit + root) % size;
            bytes = contents(&self.receive(parent, bytes.len())?.await?);
        }
        let mut sends = Vec::new();
        while bit > 1 {
            bit >>= 1;
            if place + bit < size {
                sends.push(self.send((place + bit + root) % size, &bytes)?);
            }
        }
        for send in sends {
            send.await?;
        }
        Ok(bytes)
    }

    /// Gives everybody the bytes of all members, in the order of their ranks; each has as many as `own`.
    /// Bruck's algorithm: ceil(log2 size) rounds.
    pub(crate) async fn allgather(&self, own: &[u8]) -> Result<Vec<u8>> {
        let size = self.members.size() as usize;
        let rank = self.rank as usize;
        let mut gathered = own.to_vec();
        let mut present = 1;
        while present < size {
            let count = present.min(size - present);
            let target = (rank + size - present) % size;
            let source = (rank + present) % size;
            let receive = self.receive(source as i32, count * own.len())?;
            let send = self.send(target as i32, &gathered[..count * own.len()])?;
            gathered.extend(contents(&receive.await?));
            send.await?;
            present += count;
        }
        // Block i is that of rank (own rank + i) mod size.
        gathered.rotate_right(rank * own.len());
        Ok(gathered)
    }
}

impl Channel {
    /// As [`Channel::allgather`], where each has as many bytes as it likes.
    pub(super) async fn allgather_any(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let lengths = decode(&self.allgather(&encode(&[own.len() as u32])).await?);
        let most = lengths.iter().copied().max().unwrap_or(0) as usize;
        let mut padded = own.to_vec();
        padded.resize(most.max(1), 0);
        let gathered = self.allgather(&padded).await?;
        let parts = gathered.chunks_exact(most.max(1)).zip(lengths);
        Ok(parts.map(|(part, length)| part[..length as usize].to_vec()).collect())
    }

    /// As [`Channel::broadcast`], where only the root knows the length.
    pub(super) async fn broadcast_any(&self, root: i32, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let [length] = decode_array(&self.broadcast(root, encode(&[bytes.len() as u32])).await?)?;
        let mut bytes = bytes;
        bytes.resize(length as usize, 0);
        self.broadcast(root, bytes).await
    }

    /// As [`Channel::swap`], where each side has as many bytes as it likes.
    pub(super) async fn swap_any(&self, partner: i32, own: &[u8]) -> Result<Vec<u8>> {
        let [length] = decode_array(&self.swap(partner, &encode(&[own.len() as u32]), 4).await?)?;
        self.swap(partner, own, length as usize).await
    }
}

/// Numbers as they travel between processes of one machine type: 4 bytes each, least significant first.
pub(super) fn encode(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The inverse of [`encode`].
pub(super) fn decode(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|chunk| u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]])).collect()
}

/// A header of numbers with a fixed length.
pub(super) fn decode_array<const COUNT: usize>(bytes: &[u8]) -> Result<[u32; COUNT]> {
    decode(bytes).try_into().map_err(|words: Vec<u32>| {
        Error::new(
            crate::constants::MPI_ERR_INTERN,
            format!(
                "{} numbers came where {COUNT} were due; the processes do not make the same call",
                words.len()
            ),
        )
    })
}
