//! How an agent is started on a host: by ssh, by Slurm, on this machine, or by a command of the user's.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;

/// The option that makes `mpiexec` an agent.
pub const AGENT_OPTION: &str = "--agent";
/// In the words of a way, the host.
const HOST: &str = "{host}";
/// In the words of a way, the agent's command as one word for a shell.
const COMMAND: &str = "{command}";
/// Agents that one guardian starts through ssh or Slurm, before others start the rest.
const FAN_OUT: u32 = 32;

/// How agents are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The command before the agent's own; none for an agent on this machine.
    pub words: Vec<OsString>,
    /// The agent's program on each host.
    pub program: OsString,
    /// How many agents one guardian starts at most; 0 for no limit.
    pub fan_out: u32,
}

/// The kinds of ways that have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    Local,
    Ssh,
    Slurm,
}

impl Named {
    fn words(self) -> &'static [&'static str] {
        match self {
            Named::Local => &[],
            // It never asks for a password, and says so soon when nobody answers.
            Named::Ssh => &[
                "ssh",
                "-T",
                "-x",
                "-o",
                "BatchMode=yes",
                "-o",
                "ConnectTimeout=15",
                "-o",
                "ServerAliveInterval=5",
                "-o",
                "ServerAliveCountMax=3",
                HOST,
                COMMAND,
            ],
            // A step of one task, beside those that run on the node already.
            Named::Slurm => &[
                "srun",
                "--quiet",
                "--nodes=1",
                "--ntasks=1",
                "--nodelist={host}",
                "--overlap",
                "--mpi=none",
                "--cpu-bind=none",
                "--kill-on-bad-exit=0",
            ],
        }
    }
}

impl Way {
    /// The way that the user names: `local`, `ssh`, `slurm`, or a command with `{host}` in it.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str, program: OsString) -> Result<Way, String> {
        let named = match text {
            "local" => Some(Named::Local),
            "ssh" => Some(Named::Ssh),
            "slurm" | "srun" => Some(Named::Slurm),
            _ => None,
        };
        if let Some(named) = named {
            return Ok(Way::named(named, program));
        }
        let words: Vec<OsString> = text.split_ascii_whitespace().map(OsString::from).collect();
        if !text.contains(HOST) {
            return Err(format!(
                "the starter is '{text}'; allowed are local, ssh, slurm, or a command with {HOST} in it, such as \
                 'kubectl exec -i {HOST} --'"
            ));
        }
        Ok(Way { words, program, fan_out: 0 })
    }

    /// One of the ways that have names.
    pub fn named(named: Named, program: OsString) -> Way {
        let fan_out = if named == Named::Local { 0 } else { FAN_OUT };
        Way { words: named.words().iter().map(OsString::from).collect(), program, fan_out }
    }

    /// Whether agents run on this machine.
    pub fn is_local(&self) -> bool {
        self.words.is_empty()
    }

    /// The words that start an agent on `host`.
    pub fn command(&self, host: &str) -> Vec<OsString> {
        let agent = [self.program.clone(), AGENT_OPTION.into()];
        let mut command = Vec::new();
        let mut whole = false;
        for word in &self.words {
            if word == COMMAND {
                whole = true;
                let mut line = OsString::from("exec");
                for word in &agent {
                    line.push(" ");
                    line.push(quoted(word));
                }
                command.push(line);
            } else {
                command.push(replaced(word, HOST, host));
            }
        }
        if !whole {
            command.extend(agent);
        }
        command
    }

    /// As a person would type it.
    pub fn shown(&self, host: &str) -> String {
        let words: Vec<String> =
            self.command(host).iter().map(|word| quoted(word).to_string_lossy().into_owned()).collect();
        words.join(" ")
    }

    /// The command, not started yet.
    pub fn prepare(&self, host: &str) -> Command {
        let words = self.command(host);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// What a person can try when it fails.
    pub fn advice(&self, host: &str) -> String {
        match self.words.first().map(|word| word.to_string_lossy().into_owned()).as_deref() {
            None => String::new(),
            Some("ssh") => format!(
                "it must work without a password: try `ssh -o BatchMode=yes {host} true`, or `parnass doctor {host}`"
            ),
            Some("srun") => format!("try `srun --overlap --nodelist={host} --nodes=1 hostname`"),
            Some(_) => "try the command by hand".to_owned(),
        }
    }
}

/// `word` with `value` for each `name` in it.
fn replaced(word: &OsStr, name: &str, value: &str) -> OsString {
    let bytes = word.as_bytes();
    let mut result = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(name.len()).position(|window| window == name.as_bytes()) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(value.as_bytes());
        rest = &rest[at + name.len()..];
    }
    result.extend_from_slice(rest);
    OsString::from_vec(result)
}

/// As a word of a POSIX shell.
pub fn quoted(word: &OsStr) -> OsString {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(byte);
    if !word.is_empty() && word.as_bytes().iter().all(plain) {
        return word.to_owned();
    }
    let mut result = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => result.extend_from_slice(b"'\\''"),
            byte => result.push(byte),
        }
    }
    result.push(b'\'');
    OsString::from_vec(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_gets_the_command_as_one_word_for_its_shell() {
        let way = Way::parse("ssh", "/opt/it's here/bin/mpiexec".into()).unwrap();
        let words = way.command("me@b");
        assert_eq!(words[words.len() - 2], "me@b");
        assert_eq!(words[words.len() - 1], r"exec '/opt/it'\''s here/bin/mpiexec' --agent");
        assert!(words.contains(&"BatchMode=yes".into()));
    }

    #[test]
    fn a_template_is_filled_in() {
        let way = Way::parse("kubectl exec -i pod-{host} --", "/p/mpiexec".into()).unwrap();
        assert_eq!(way.shown("7"), "kubectl exec -i pod-7 -- /p/mpiexec --agent");
        let way = Way::parse("sh -c {command} {host}", "/p/mpiexec".into()).unwrap();
        assert_eq!(way.command("b"), ["sh", "-c", "exec /p/mpiexec --agent", "b"]);
        assert_eq!(Way::parse("local", "/p/mpiexec".into()).unwrap().command("b"), ["/p/mpiexec", "--agent"]);
        assert!(Way::parse("rsh", "/p/mpiexec".into()).unwrap_err().contains("{host}"));
    }

    #[test]
    fn a_step_of_slurm_is_on_the_node_that_is_named() {
        let way = Way::named(Named::Slurm, "/p/mpiexec".into());
        assert!(way.command("n7").contains(&"--nodelist=n7".into()));
        assert_eq!(way.command("n7").last().unwrap(), AGENT_OPTION);
    }
}
