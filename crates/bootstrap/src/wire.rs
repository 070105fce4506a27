//! Numbers and byte strings in a row: what the start-up formats of docs/wire/ are made of. Numbers are
//! little-endian; a byte string is its length in four bytes and then itself.

/// Builds a message.
#[derive(Debug, Default)]
pub struct Encoder(Vec<u8>);

impl Encoder {
    /// An empty message.
    pub fn new() -> Encoder {
        Encoder::default()
    }

    /// Adds one byte.
    pub fn u8(&mut self, value: u8) -> &mut Encoder {
        self.0.push(value);
        self
    }

    /// Adds four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Encoder {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Adds four bytes.
    pub fn i32(&mut self, value: i32) -> &mut Encoder {
        self.u32(value.cast_unsigned())
    }

    /// Adds bytes of a length that the reader knows.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Encoder {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds a byte string.
    ///
    /// # Panics
    /// If it has 4 GiB or more.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Encoder {
        self.u32(u32::try_from(bytes.len()).expect("start-up messages are short"));
        self.raw(bytes)
    }

    /// The message.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// Reads a message, which may hold anything. Every call gives `None` where the bytes end too early.
#[derive(Clone, Debug)]
pub struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    /// Reads from the first byte on.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder(bytes)
    }

    /// Takes one byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.raw(1).map(|bytes| bytes[0])
    }

    /// Takes four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.raw(4)?.try_into().ok()?))
    }

    /// Takes four bytes.
    pub fn i32(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }

    /// Takes `length` bytes.
    pub fn raw(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Takes a byte string.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.raw(length as usize)
    }

    /// Takes a byte string that is text.
    pub fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    /// Takes a number of things that have `each` bytes at least; `None` where fewer bytes are left, so that a
    /// length from elsewhere never reserves memory.
    pub fn count(&mut self, each: usize) -> Option<usize> {
        let count = self.u32()? as usize;
        (count.checked_mul(each)? <= self.0.len()).then_some(count)
    }

    /// Whether everything was taken.
    pub fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }
}
