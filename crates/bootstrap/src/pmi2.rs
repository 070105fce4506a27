//! PMI-2: what Slurm (`srun --mpi=pmi2`) and the launchers of MPICH say to the processes that they start, where version 2 is asked
//! for. A command is six digits with its length and then words `NAME=VALUE;`, in each direction; a semicolon in a value is
//! doubled. There is a store of names and values, a fence after which every process sees what all have put, and facts about the job.

use std::io;

use crate::foreign::Store;
use crate::pmi::{Launcher, Line, field, get_pieces, malformed, put_pieces};

/// Bytes of the length in front of a command.
const LENGTH_BYTES: usize = 6;
/// Longer commands come from something else.
const COMMAND_BYTES_MAXIMUM: usize = 64 << 10;
/// Digits of a value at most: Slurm and MPICH take values of up to 1,023 bytes.
const DIGITS_MAXIMUM: usize = 1_000;

/// The connection to a PMI-2 server.
#[derive(Debug)]
pub struct Client {
    line: Line,
    job: String,
    app_number: i32,
}

impl Client {
    /// Goes on with a server that has agreed to version 2.
    ///
    /// # Errors
    /// It does not answer as PMI-2 says, or gives this process another place than `rank` of `size`.
    pub fn new(line: Line, rank: u32, size: u32, job: &str) -> io::Result<Client> {
        let mut client = Client { line, job: job.to_owned(), app_number: -1 };
        let full = client.ask(&[
            ("cmd", "fullinit"),
            ("pmijobid", job),
            ("pmirank", &rank.to_string()),
            ("threaded", "FALSE"),
        ])?;
        let number = |name: &str| get(&full, name).and_then(|text| text.parse::<i64>().ok());
        if number("rank") != Some(rank.into()) || number("size") != Some(size.into()) {
            return Err(malformed(&format!(
                "rank and size of {full:?}, and in the environment rank {rank} of {size}"
            )));
        }
        client.app_number = number("appnum").and_then(|number| number.try_into().ok()).unwrap_or(-1);
        let known = client.ask(&[("cmd", "job-getid")])?;
        if let Some(job) = get(&known, "jobid") {
            client.job = job.to_owned();
        }
        Ok(client)
    }

    fn put_text(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.ask(&[("cmd", "kvs-put"), ("key", name), ("value", value)]).map(drop)
    }

    fn get_text(&mut self, name: &str) -> io::Result<String> {
        let job = self.job.clone();
        let answer = self.ask(&[("cmd", "kvs-get"), ("jobid", &job), ("srcid", "-1"), ("key", name)])?;
        found(&answer, name)
    }

    /// Sends a command and gives the words of the answer, which must belong to it and say no error.
    fn ask(&mut self, words: &[(&str, &str)]) -> io::Result<Words> {
        self.send(words)?;
        let answer = self.receive()?;
        let command = words[0].1;
        if get(&answer, "cmd").and_then(|answered| answered.strip_suffix("-response")) != Some(command) {
            return Err(malformed(&format!("{answer:?} when it was asked for {command}")));
        }
        match get(&answer, "rc") {
            None | Some("0") => Ok(answer),
            Some(code) => {
                let text = get(&answer, "errmsg").unwrap_or("no reason given");
                Err(io::Error::other(format!("the launcher refused {command} with code {code}: {text}")))
            }
        }
    }

    fn send(&mut self, words: &[(&str, &str)]) -> io::Result<()> {
        let body: String =
            words.iter().map(|(name, value)| format!("{name}={};", value.replace(';', ";;"))).collect();
        self.line.send(format!("{:>LENGTH_BYTES$}{body}", body.len()).as_bytes())
    }

    fn receive(&mut self) -> io::Result<Words> {
        let text = String::from_utf8_lossy(&self.line.exactly(LENGTH_BYTES)?).into_owned();
        let length: usize = text.trim().parse().map_err(|_| malformed(&text))?;
        if length > COMMAND_BYTES_MAXIMUM {
            return Err(malformed(&format!("a command of {length} bytes")));
        }
        let body = self.line.exactly(length)?;
        let text = String::from_utf8_lossy(&body);
        words_of(&text).ok_or_else(|| malformed(&text))
    }
}

/// The names and values of a command.
type Words = Vec<(String, String)>;

fn get<'a>(words: &'a Words, name: &str) -> Option<&'a str> {
    words.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The value in an answer that may say that there is none.
fn found(answer: &Words, name: &str) -> io::Result<String> {
    match (get(answer, "found"), get(answer, "value")) {
        (None | Some("TRUE"), Some(value)) => Ok(value.to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, format!("the launcher knows no {name}"))),
    }
}

/// Takes a command apart.
fn words_of(text: &str) -> Option<Words> {
    let mut words = Words::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let mut value = String::new();
        let mut characters = after.char_indices().peekable();
        let end = loop {
            match characters.next()? {
                (_, ';') if characters.next_if(|(_, next)| *next == ';').is_some() => value.push(';'),
                (at, ';') => break at + 1,
                (_, character) => value.push(character),
            }
        };
        words.push((name.to_owned(), value));
        rest = &after[end..];
    }
    Some(words)
}

impl Store for Client {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        put_pieces(name, bytes, DIGITS_MAXIMUM, |name, text| self.put_text(name, text))
    }

    /// Names are of the whole job here: each says itself whose it is.
    fn get(&mut self, _rank: u32, name: &str) -> io::Result<Vec<u8>> {
        get_pieces(name, |name| self.get_text(name))
    }

    fn barrier(&mut self) -> io::Result<()> {
        self.ask(&[("cmd", "kvs-fence")]).map(drop)
    }

    fn finalize(&mut self) -> io::Result<()> {
        self.ask(&[("cmd", "finalize")]).map(drop)
    }

    fn abort(&mut self, code: i32, message: &str) {
        let text =
            if message.is_empty() { format!("MPI_Abort with code {code}") } else { message.to_owned() };
        eprintln!("parnass: {text}"); // Not every launcher shows what it is told.
        // Nobody answers, and where nobody listens there is nothing more to do.
        let _ = self.send(&[("cmd", "abort"), ("isworld", "TRUE"), ("msg", &text)]);
    }

    fn app_number(&mut self) -> i32 {
        self.app_number
    }
}

impl Launcher for Client {
    fn mapping(&mut self) -> io::Result<String> {
        let name = "PMI_process_mapping";
        let answer = self.ask(&[("cmd", "info-getjobattr"), ("key", name)])?;
        found(&answer, name)
    }
}

/// Asks a server for version 2; whether it agrees.
pub fn agree(line: &mut Line) -> io::Result<bool> {
    let answer = line.ask("cmd=init pmi_version=2 pmi_subversion=0")?;
    if field(&answer, "cmd") != Some("response_to_init") {
        return Err(malformed(&answer));
    }
    Ok(field(&answer, "rc").is_none_or(|code| code == "0") && field(&answer, "pmi_version") == Some("2"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn framed(bodies: &[&str]) -> Vec<u8> {
        // Slurm puts the digits to the left, MPICH to the right.
        let frame = |(index, body): (usize, &&str)| match index % 2 {
            0 => format!("{:<6}{body}", body.len()),
            _ => format!("{:>6}{body}", body.len()),
        };
        bodies.iter().enumerate().map(frame).collect::<String>().into_bytes()
    }

    #[test]
    fn answers_are_taken_apart_and_refusals_told() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n").unwrap();
        far.write_all(&framed(&[
            "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=1;size=2;appnum=-1;debugged=FALSE;pmiverbose=FALSE;",
            "cmd=job-getid-response;rc=0;jobid=7.0;",
            "cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,(0,1,2));",
            "cmd=kvs-put-response;rc=0;",
            "cmd=kvs-put-response;rc=0;",
            "cmd=kvs-get-response;rc=0;found=TRUE;value=n1;",
            "cmd=kvs-get-response;rc=0;found=TRUE;value=0aff;",
            "cmd=kvs-get-response;rc=0;found=FALSE;",
            "cmd=kvs-fence-response;rc=3;errmsg=a;;b;",
            "cmd=kvs-put-response;rc=0;",
        ]))
        .unwrap();
        let mut line = Line::new(OwnedFd::from(near));
        assert!(agree(&mut line).unwrap());
        let mut client = Client::new(line, 1, 2, "7.0").unwrap();
        assert_eq!(client.mapping().unwrap(), "(vector,(0,1,2))");
        client.put("key", &[7; 40]).unwrap();
        assert_eq!(client.get(0, "key").unwrap(), [10, 255]);
        assert!(client.get(0, "other").unwrap_err().to_string().contains("knows no other"));
        let refused = client.barrier().unwrap_err().to_string();
        assert!(refused.contains("code 3") && refused.contains("a;b"), "{refused}");
        // The answer to another question.
        assert!(client.barrier().is_err());
        drop(far);
        assert!(client.finalize().is_err());
    }

    #[test]
    fn a_server_without_version_2_and_one_that_gives_another_place() {
        for (answer, agrees) in [
            ("cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n", Some(false)),
            ("cmd=response_to_init rc=-1 pmi_version=2 pmi_subversion=0\n", Some(false)),
            ("cmd=unknown\n", None),
        ] {
            let (near, mut far) = UnixStream::pair().unwrap();
            far.write_all(answer.as_bytes()).unwrap();
            assert_eq!(agree(&mut Line::new(OwnedFd::from(near))).ok(), agrees, "{answer}");
        }
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(&framed(&["cmd=fullinit-response;rc=0;rank=0;size=2;"])).unwrap();
        assert!(Client::new(Line::new(OwnedFd::from(near)), 1, 2, "j").is_err());
    }

    proptest! {
        #[test]
        fn words_come_back(words in prop::collection::vec(("[a-z-]{1,8}", "[ -~]{0,20}"), 0..6)) {
            // A value that begins with a semicolon after one that is empty could not be told apart by anybody.
            prop_assume!(words.iter().all(|(_, value)| !value.starts_with(';') && !value.ends_with(';')));
            let text: String = words.iter().map(|(name, value)| format!("{name}={};", value.replace(';', ";;"))).collect();
            prop_assert_eq!(words_of(&text), Some(words));
        }

        #[test]
        fn any_answer_is_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (near, mut far) = UnixStream::pair().unwrap();
            far.write_all(&bytes).unwrap();
            drop(far);
            prop_assert!(Client::new(Line::new(OwnedFd::from(near)), 0, 1, "j").is_err());
        }

        #[test]
        fn any_text_is_taken_apart_or_refused(text in "[ -~]{0,60}") {
            let _ = words_of(&text);
        }
    }
}
