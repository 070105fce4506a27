//! Info hints of files (MPI 5.0, section 14.2.8): those that are known by their ROMIO names too.

use crate::info::Info;

/// Whether collective accesses go through aggregators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffering {
    Always,
    Never,
    /// Where the accesses of the processes are interleaved.
    Automatic,
}

impl Buffering {
    fn name(self) -> &'static str {
        match self {
            Buffering::Always => "enable",
            Buffering::Never => "disable",
            Buffering::Automatic => "automatic",
        }
    }

    fn of(value: &[u8]) -> Option<Buffering> {
        [Buffering::Always, Buffering::Never, Buffering::Automatic]
            .into_iter()
            .find(|one| value.eq_ignore_ascii_case(one.name().as_bytes()))
    }
}

/// The hints in use.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    /// How many processes write and read for all in a collective access.
    pub(super) aggregators: u32,
    /// How many bytes each of them handles at once.
    pub(super) buffer_bytes: u64,
    pub(super) buffered_reads: Buffering,
    pub(super) buffered_writes: Buffering,
    /// Permissions of a file that is created.
    pub(super) permissions: Option<u32>,
    /// Hints that are known to the standard and change nothing here, as the program gave them.
    kept: Vec<(&'static [u8], Vec<u8>)>,
}

/// More aggregators than this are not used unless asked for.
const MOST_AGGREGATORS: u32 = 8;
const BUFFER_BYTES: u64 = 16 << 20;

/// Hints of the standard that are kept and told.
const KEPT: [&[u8]; 12] = [
    b"access_style",
    b"collective_buffering",
    b"cb_block_size",
    b"chunked",
    b"chunked_item",
    b"chunked_size",
    b"filename",
    b"io_node_list",
    b"nb_proc",
    b"num_io_nodes",
    b"striping_factor",
    b"striping_unit",
];

fn number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.trim().parse().ok().filter(|&number| number > 0)
}

impl Hints {
    /// For a file that so many processes have open.
    pub(super) fn new(size: u32) -> Hints {
        Hints {
            aggregators: size.clamp(1, MOST_AGGREGATORS),
            buffer_bytes: BUFFER_BYTES,
            buffered_reads: Buffering::Automatic,
            buffered_writes: Buffering::Automatic,
            permissions: None,
            kept: Vec::new(),
        }
    }

    /// Takes over the hints that are known and make sense; others are ignored, as the standard asks.
    pub(super) fn update(&mut self, info: &Info, size: u32) {
        for (key, value) in info.iter() {
            match key {
                b"cb_nodes" => {
                    if let Some(nodes) = number(value) {
                        self.aggregators = nodes.min(u64::from(size)) as u32;
                    }
                }
                b"cb_buffer_size" => self.buffer_bytes = number(value).unwrap_or(self.buffer_bytes),
                b"romio_cb_read" => self.buffered_reads = Buffering::of(value).unwrap_or(self.buffered_reads),
                b"romio_cb_write" => {
                    self.buffered_writes = Buffering::of(value).unwrap_or(self.buffered_writes)
                }
                b"collective_buffering" if matches!(value, b"true" | b"false") => {
                    let mode = if value == b"true" { Buffering::Always } else { Buffering::Never };
                    (self.buffered_reads, self.buffered_writes) = (mode, mode);
                    self.keep(b"collective_buffering", value);
                }
                b"file_perm" => {
                    let text = std::str::from_utf8(value).ok();
                    let permissions = text.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
                    self.permissions = permissions.filter(|&bits| bits <= 0o7777).or(self.permissions);
                }
                _ => {
                    if let Some(known) =
                        KEPT.into_iter().find(|known| *known == key && *known != b"collective_buffering")
                    {
                        self.keep(known, value);
                    }
                }
            }
        }
    }

    fn keep(&mut self, key: &'static [u8], value: &[u8]) {
        self.kept.retain(|(kept, _)| *kept != key);
        self.kept.push((key, value.to_vec()));
    }

    /// MPI_File_get_info.
    pub(super) fn info(&self) -> Info {
        let mut info = Info::new();
        let mut set = |key: &[u8], value: &[u8]| {
            info.set(key, value).expect(
                "a known hint has a valid key, and a value that came from an info object or is short",
            );
        };
        set(b"cb_nodes", self.aggregators.to_string().as_bytes());
        set(b"cb_buffer_size", self.buffer_bytes.to_string().as_bytes());
        set(b"romio_cb_read", self.buffered_reads.name().as_bytes());
        set(b"romio_cb_write", self.buffered_writes.name().as_bytes());
        if let Some(permissions) = self.permissions {
            set(b"file_perm", format!("{permissions:o}").as_bytes());
        }
        for (key, value) in &self.kept {
            set(key, value);
        }
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_that_make_sense_are_told_again() {
        let mut given = Info::new();
        for (key, value) in [
            ("cb_nodes", "99"),
            ("cb_buffer_size", "0"),
            ("romio_cb_write", "ENABLE"),
            ("romio_cb_read", "perhaps"),
            ("striping_unit", "65536"),
            ("file_perm", "640"),
            ("colour", "green"),
        ] {
            given.set(key.as_bytes(), value.as_bytes()).unwrap();
        }
        let mut hints = Hints::new(4);
        hints.update(&given, 4);
        let told = hints.info();
        let value =
            |key: &str| told.value(key.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned());
        assert_eq!(value("cb_nodes").as_deref(), Some("4"));
        assert_eq!(value("cb_buffer_size").as_deref(), Some("16777216"));
        assert_eq!(value("romio_cb_write").as_deref(), Some("enable"));
        assert_eq!(value("romio_cb_read").as_deref(), Some("automatic"));
        assert_eq!(value("striping_unit").as_deref(), Some("65536"));
        assert_eq!(value("file_perm").as_deref(), Some("640"));
        assert_eq!(value("colour"), None);
    }

    #[test]
    fn collective_buffering_is_for_both_directions() {
        let mut given = Info::new();
        given.set(b"collective_buffering", b"false").unwrap();
        let mut hints = Hints::new(2);
        hints.update(&given, 2);
        assert_eq!((hints.buffered_reads, hints.buffered_writes), (Buffering::Never, Buffering::Never));
    }
}
