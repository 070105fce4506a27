//! The messages that matched probes have taken and nobody has received yet (MPI_Message), and their handles.
//!
//! A program that probes for each message has one of them at a time, and asks nothing of it but to be received. So its handle is the number of a
//! place here and which life of that place it is: in a table of objects that several threads may use at once it would cost more than a short message.

use crate::handles::{GENERATION_MASK, INDEX_BITS, Table, too_many};
use crate::objects::Message;
use parnass_base::guarded::Guarded;
use parnass_mpi::Result;

/// Half of what an index says: threads that find room at the same time all have it.
const MOST: usize = 1 << (INDEX_BITS - 1);

#[derive(Default)]
struct Place {
    life: u64,
    message: Option<Message>,
}

struct Messages {
    places: Vec<Place>,
    /// The numbers of those without a message.
    free: Vec<usize>,
}

static MESSAGES: Guarded<Messages> = Guarded::new(Messages { places: Vec::new(), free: Vec::new() });

impl Messages {
    /// The place of a handle, if a message lies there.
    #[inline]
    fn find(&mut self, handle: usize) -> Option<(usize, &mut Place)> {
        let (number, life) = Table::<Message>::parts(handle)?;
        let place = self.places.get_mut(number)?;
        (place.life & GENERATION_MASK == life && place.message.is_some()).then_some((number, place))
    }
}

/// Keeps a message. Its handle.
pub fn keep(message: Message) -> usize {
    let mut messages = MESSAGES.lock();
    let number = messages.free.pop().unwrap_or_else(|| {
        messages.places.push(Place::default());
        messages.places.len() - 1
    });
    let place = &mut messages.places[number];
    place.message = Some(message);
    Table::<Message>::compose(number, place.life)
}

/// Whether there is room for another one.
#[inline]
pub fn check_room() -> Result<()> {
    let messages = MESSAGES.lock();
    if messages.free.is_empty() && messages.places.len() >= MOST {
        Err(too_many::<Message>(MOST, "receive some"))
    } else {
        Ok(())
    }
}

/// Whether there is a message with this handle.
#[inline]
pub fn is_kept(handle: usize) -> bool {
    MESSAGES.lock().find(handle).is_some()
}

/// Gives a message to its receive, and ends its handle.
#[inline]
pub fn take(handle: usize) -> Option<Message> {
    let mut messages = MESSAGES.lock();
    let (number, place) = messages.find(handle)?;
    let message = place.message.take();
    place.life += 1;
    messages.free.push(number);
    message
}
