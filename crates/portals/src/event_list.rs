//! A list that costs nothing while it holds at most one element.

use std::collections::VecDeque;

/// Room for so many is made at once when there are several.
const MANY: usize = 32;

/// First in, first out; the first element lies inside, only further ones are allocated.
#[derive(Debug)]
pub struct EventList<T> {
    first: Option<T>,
    rest: VecDeque<T>,
}

impl<T> Default for EventList<T> {
    fn default() -> Self {
        EventList { first: None, rest: VecDeque::new() }
    }
}

impl<T> EventList<T> {
    /// Adds at the end.
    #[inline(always)]
    pub fn push(&mut self, element: T) {
        if self.first.is_none() && self.rest.is_empty() {
            self.first = Some(element);
        } else {
            if self.rest.capacity() == 0 {
                self.rest.reserve(MANY);
            }
            self.rest.push_back(element);
        }
    }

    /// Takes from the front.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        self.first.take().or_else(|| self.rest.pop_front())
    }

    /// Whether nothing is in it.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first.is_none() && self.rest.is_empty()
    }
}
