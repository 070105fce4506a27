//! The files that values come from, and the decision.
//!
//! ```text
//! [measured]                      only in the file that `parnass tune` writes: where its values hold
//! version = "0.1.0"
//! processor = "..."
//! processors = 2
//!
//! [tunables]
//! direct = false
//! direct_threshold = "32 KiB"
//! ```

use crate::{Origin, Settings};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Names another configuration file; empty for none.
pub const CONFIG_VARIABLE: &str = "PARNASS_CONFIG";
/// Names another file of measured values; empty for none.
pub const TUNED_VARIABLE: &str = "PARNASS_TUNED";

/// Where measured values hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Of Parnass.
    pub version: String,
    /// The model's name.
    pub processor: String,
    /// How many are online.
    pub processors: u64,
}

impl Machine {
    /// This machine and this version.
    pub fn here() -> Machine {
        Machine {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            processor: processor(),
            processors: online_processors().unwrap_or(1),
        }
    }

    /// Why values measured on this one do not hold on `here`.
    fn differs_from(&self, here: &Machine) -> Option<String> {
        if self.version != here.version {
            return Some(format!("it was measured with version {}, this is {}", self.version, here.version));
        }
        if self.processor != here.processor {
            return Some(format!(
                "it was measured on another processor ('{}', here '{}')",
                self.processor, here.processor
            ));
        }
        let (there, here) = (self.processors, here.processors);
        (there != here).then(|| format!("it was measured on {there} processors, here are {here}"))
    }
}

/// What has become of the file of measured values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tuned {
    /// There is none at this place.
    Absent(Option<PathBuf>),
    Used(PathBuf),
    /// For this reason.
    Ignored(PathBuf, String),
}

/// The values, and what they were made of.
#[derive(Clone, Debug)]
pub struct Decision {
    pub settings: Settings,
    pub tuned: Tuned,
    /// The configuration file, where there is one.
    pub config: Option<PathBuf>,
}

/// Decides: default, measured, configured, environment, options.
///
/// # Errors
/// A sentence that says which name or value is wrong, where it stands, and what is allowed.
pub fn decide<'a>(
    options: impl IntoIterator<Item = (&'a str, &'a str)>,
    environment: &[(String, String)],
) -> Result<Decision, String> {
    let mut settings = Settings::default();
    let tuned = match place(environment, TUNED_VARIABLE, "tuned.toml") {
        Some(path) => read_tuned(&mut settings, path, &Machine::here)?,
        None => Tuned::Absent(None),
    };
    let config = place(environment, CONFIG_VARIABLE, "config.toml");
    let config = match config {
        Some(path) => {
            read_config(&mut settings, &path, is_named(environment, CONFIG_VARIABLE))?.then_some(path)
        }
        None => None,
    };
    settings.read_environment(environment.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
    for (name, value) in options {
        settings
            .set(name, value, Origin::Option)
            .map_err(|error| format!("--tunable {name}={value}: {error}"))?;
    }
    Ok(Decision { settings, tuned, config })
}

/// The environment of this process, as far as it is text.
pub fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Where `parnass tune` writes and `mpiexec` looks.
pub fn tuned_path(environment: &[(String, String)]) -> Option<PathBuf> {
    place(environment, TUNED_VARIABLE, "tuned.toml")
}

fn value<'a>(environment: &'a [(String, String)], name: &str) -> Option<&'a str> {
    environment.iter().rfind(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn is_named(environment: &[(String, String)], variable: &str) -> bool {
    value(environment, variable).is_some()
}

fn place(environment: &[(String, String)], variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(named) = value(environment, variable) {
        return (!named.is_empty()).then(|| named.into());
    }
    // As the XDG base directory specification says: a path that is not absolute counts as none.
    let base = value(environment, "XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home =
        || Some(Path::new(value(environment, "HOME").filter(|home| !home.is_empty())?).join(".config"));
    Some(base.or_else(home)?.join("parnass").join(name))
}

/// `Ok(None)`: there is no such file.
fn read(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}

fn read_config(settings: &mut Settings, path: &Path, needed: bool) -> Result<bool, String> {
    let Some(text) = read(path)? else {
        return if needed {
            Err(format!("{CONFIG_VARIABLE} names {}, which does not exist", path.display()))
        } else {
            Ok(false)
        };
    };
    let file = File::parse(path, &text)?;
    file.only(&["tunables"])?;
    file.apply(settings, |line| Origin::File(path.to_owned(), line))?;
    Ok(true)
}

fn read_tuned(settings: &mut Settings, path: PathBuf, here: &dyn Fn() -> Machine) -> Result<Tuned, String> {
    let Some(text) = read(&path)? else { return Ok(Tuned::Absent(Some(path))) };
    let file = File::parse(&path, &text)?;
    let Some(measured) = file.measured() else {
        let reason = "it does not say where it was measured; run parnass tune again".to_owned();
        return Ok(Tuned::Ignored(path, reason));
    };
    if let Some(reason) = measured.differs_from(&here()) {
        return Ok(Tuned::Ignored(path, format!("{reason}; run parnass tune again")));
    }
    file.only(&["measured", "tunables"])?;
    file.apply(settings, |_| Origin::Tuned(path.clone()))?;
    Ok(Tuned::Used(path))
}

/// A file that has been read.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
    table: DeTable<'a>,
}

impl<'a> File<'a> {
    fn parse(path: &'a Path, text: &'a str) -> Result<File<'a>, String> {
        match DeTable::parse(text) {
            Ok(table) => Ok(File { path, text, table: table.into_inner() }),
            Err(error) => {
                let line = line_of(text, error.span().map_or(0, |span| span.start));
                Err(format!("{}, line {line}: {}", path.display(), error.message()))
            }
        }
    }

    fn line<T>(&self, spanned: &Spanned<T>) -> usize {
        line_of(self.text, spanned.span().start)
    }

    fn section(&self, name: &str) -> Option<&DeTable<'a>> {
        self.table.get(name).and_then(|value| value.get_ref().as_table())
    }

    fn only(&self, sections: &[&str]) -> Result<(), String> {
        for (name, value) in self.table.iter() {
            if !sections.contains(&name.get_ref().as_ref()) || !value.get_ref().is_table() {
                let known: Vec<String> = sections.iter().map(|name| format!("[{name}]")).collect();
                return Err(format!(
                    "{}, line {}: '{}' has no meaning here; there is only {}",
                    self.path.display(),
                    self.line(name),
                    name.get_ref(),
                    known.join(" and ")
                ));
            }
        }
        Ok(())
    }

    fn apply(&self, settings: &mut Settings, origin: impl Fn(usize) -> Origin) -> Result<(), String> {
        let Some(tunables) = self.section("tunables") else { return Ok(()) };
        for (name, value) in tunables.iter() {
            let line = self.line(name);
            let text = match value.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(number) => number.to_string(),
                DeValue::Boolean(on) => on.to_string(),
                other => format!("{other:?}"),
            };
            settings
                .set(name.get_ref(), &text, origin(line))
                .map_err(|error| format!("{}, line {line}: {error}", self.path.display()))?;
        }
        Ok(())
    }

    fn measured(&self) -> Option<Machine> {
        let section = self.section("measured")?;
        let text = |name: &str| Some(section.get(name)?.get_ref().as_str()?.to_owned());
        Some(Machine {
            version: text("version")?,
            processor: text("processor")?,
            processors: section.get("processors")?.get_ref().as_integer()?.to_string().parse().ok()?,
        })
    }
}

fn line_of(text: &str, position: usize) -> usize {
    1 + text.as_bytes()[..position.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// The text of a file of measured values.
pub fn tuned_text(machine: &Machine, values: &[(&str, String)]) -> String {
    let mut text = format!(
        "# Written by parnass tune. It holds for this machine and version only; elsewhere it is ignored.\n\n\
         [measured]\nversion = {}\nprocessor = {}\nprocessors = {}\n\n[tunables]\n",
        quoted(&machine.version),
        quoted(&machine.processor),
        machine.processors
    );
    for (name, value) in values {
        let value =
            if value.bytes().all(|byte| byte.is_ascii_digit()) { value.clone() } else { quoted(value) };
        text += &format!("{name} = {value}\n");
    }
    text
}

fn quoted(text: &str) -> String {
    let plain: String = text.chars().filter(|character| !character.is_control()).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The model of the first processor, as the kernel names it.
fn processor() -> String {
    // The whole file can be long, and slow to make.
    let mut start = vec![0; 4096];
    let length = std::fs::File::open("/proc/cpuinfo").and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    let text = String::from_utf8_lossy(&start[..length]);
    let field = |wanted: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == wanted).then(|| value.trim().to_owned())
        })
    };
    let part = || Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    field("model name").or_else(part).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// From the list of ranges that the kernel keeps, as "0-3,8".
pub fn online_processors() -> Option<u64> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<u64>().ok()? + 1 - first.parse::<u64>().ok()?)
    };
    list.trim().split(',').map(range).sum()
}

impl fmt::Display for Tuned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tuned::Absent(Some(path)) => {
                write!(formatter, "none at {} (parnass tune makes it)", path.display())
            }
            Tuned::Absent(None) => formatter.write_str("none"),
            Tuned::Used(path) => write!(formatter, "{}", path.display()),
            Tuned::Ignored(path, reason) => write!(formatter, "{} is ignored: {reason}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DIRECT, DIRECT_THRESHOLD};

    /// A directory that is removed at the end.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let path = std::env::temp_dir().join(format!("parnass-tunables-{name}-{}", std::process::id()));
            std::fs::create_dir_all(path.join("parnass")).unwrap();
            Place(path)
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.0.join("parnass").join(name), text).unwrap();
        }

        fn environment(&self, more: &[(&str, &str)]) -> Vec<(String, String)> {
            let own = ("XDG_CONFIG_HOME", self.0.to_str().unwrap());
            more.iter().copied().chain([own]).map(|(name, value)| (name.into(), value.into())).collect()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_later_source_wins() {
        let place = Place::new("order");
        let environment = place.environment(&[]);
        assert_eq!(decide([], &environment).unwrap().settings, Settings::default());
        place.write(
            "tuned.toml",
            &tuned_text(&Machine::here(), &[("direct_threshold", "1".into()), ("direct", "off".into())]),
        );
        let decision = decide([], &environment).unwrap();
        assert!(matches!(decision.tuned, Tuned::Used(_)), "{:?}", decision.tuned);
        assert_eq!(
            (decision.settings.number(DIRECT_THRESHOLD), decision.settings.switch(DIRECT)),
            (1, false)
        );
        place.write("config.toml", "[tunables]\ndirect_threshold = 2\n");
        assert_eq!(decide([], &environment).unwrap().settings.number(DIRECT_THRESHOLD), 2);
        let environment = place.environment(&[("PARNASS_DIRECT_THRESHOLD", "3")]);
        assert_eq!(decide([], &environment).unwrap().settings.number(DIRECT_THRESHOLD), 3);
        let decision = decide([("direct_threshold", "4")], &environment).unwrap();
        assert_eq!(decision.settings.of(DIRECT_THRESHOLD), (&crate::Value::Number(4), &Origin::Option));
        assert!(!decision.settings.switch(DIRECT));
    }

    #[test]
    fn values_of_another_machine_or_version_are_ignored() {
        let place = Place::new("other");
        let environment = place.environment(&[]);
        let here = Machine::here();
        for other in [
            Machine { version: "0.0.1".into(), ..here.clone() },
            Machine { processor: "Abacus \"9\"".into(), ..here.clone() },
            Machine { processors: here.processors + 1, ..here.clone() },
        ] {
            place.write(
                "tuned.toml",
                &tuned_text(&other, &[("direct_threshold", "1".into()), ("gone", "1".into())]),
            );
            let decision = decide([], &environment).unwrap();
            assert_eq!(decision.settings, Settings::default());
            assert!(decision.tuned.to_string().contains("is ignored: it was measured"), "{}", decision.tuned);
        }
        place.write("tuned.toml", "[tunables]\ndirect_threshold = 1\n");
        assert!(decide([], &environment).unwrap().tuned.to_string().contains("does not say where"));
    }

    #[test]
    fn what_is_wrong_in_a_file_is_told_with_its_line() {
        let place = Place::new("wrong");
        let environment = place.environment(&[]);
        for (text, part) in [
            (
                "[tunables]\ndirect_treshold = 1\n",
                "line 2: there is no tunable 'direct_treshold'; did you mean direct_threshold?",
            ),
            (
                "[tunables]\n\ndirect_threshold = -1\n",
                "line 3: '-1' cannot be the value of direct_threshold: it must be a number of bytes, 0 B to",
            ),
            ("[tunables]\ndirect_threshold = [1]\n", "line 2: "),
            ("[tunables\n", "line 1: "),
            ("[knobs]\n", "line 1: 'knobs' has no meaning here; there is only [tunables]"),
        ] {
            place.write("config.toml", text);
            let error = decide([], &environment).unwrap_err();
            assert!(error.contains("config.toml, ") && error.contains(part), "{error}");
        }
        place.write("config.toml", "");
        let error = decide([("direct_thrshold", "1")], &environment).unwrap_err();
        assert!(
            error.starts_with("--tunable direct_thrshold=1: ")
                && error.contains("did you mean direct_threshold?"),
            "{error}"
        );
        assert!(decide([], &place.environment(&[("PARNASS_CONFIG", "/no/such/file")])).is_err());
        assert!(decide([], &place.environment(&[("PARNASS_CONFIG", "")])).is_ok());
    }
}
