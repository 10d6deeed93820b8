//! The connection file: where Jupyter wants the kernel to listen, and the key that signs messages.

use super::zmtp::Endpoint;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The five channels, in the order of the connection file.
pub const CHANNELS: [&str; 5] = ["shell", "iopub", "stdin", "control", "hb"];

/// Bytes of a key that nobody guesses.
const SHORTEST: usize = 16;

/// What a connection file says.
#[derive(Debug, Clone)]
pub struct Connection {
    path: PathBuf,
    content: Value,
    /// Key of the signatures; messages are not signed if it is empty.
    pub key: Vec<u8>,
}

impl Connection {
    /// Read a connection file.
    pub fn read(path: &Path) -> Result<Self> {
        let what = || format!("cannot use the connection file {}", path.display());
        let text = std::fs::read_to_string(path).with_context(what)?;
        let content: Value = serde_json::from_str(&text).with_context(what)?;
        let scheme = content["signature_scheme"]
            .as_str()
            .unwrap_or("hmac-sha256");
        let key = key(path, &content)?;
        if scheme != "hmac-sha256" && !key.is_empty() {
            bail!(
                "the connection file {} asks for signatures by {scheme}; set Session.signature_scheme to hmac-sha256 in Jupyter's configuration",
                path.display()
            );
        }
        // To listen without what was asked for would be worse than not to start.
        if content.get("curve_secretkey").is_some() {
            bail!(
                "the connection file {} asks for encryption by CurveZMQ, which this kernel does not have; set KernelManager.transport_encryption to disabled in Jupyter's configuration",
                path.display()
            );
        }
        let connection = Self {
            path: path.to_path_buf(),
            content,
            key,
        };
        for channel in CHANNELS {
            let endpoint = connection.endpoint(channel)?;
            ensure!(
                connection.key.is_empty()
                    || connection.key.len() >= SHORTEST
                    || endpoint.is_local(),
                "the connection file {} has a key of {} bytes, and {endpoint} can be reached from other machines, where so short a key can be guessed; set one of at least {SHORTEST}",
                path.display(),
                connection.key.len()
            );
            // Jupyter's way to do without signatures; over a network, anybody would run code here.
            ensure!(
                !connection.key.is_empty() || endpoint.is_local(),
                "the connection file {} has an empty key, and {endpoint} can be reached from other machines: anybody there could run code as you; set a key, or let it listen on 127.0.0.1",
                path.display()
            );
        }
        Ok(connection)
    }

    /// What to tell if messages are not signed.
    pub fn warning(&self) -> Option<String> {
        self.key.is_empty().then(|| {
            format!(
                "WARNING: the key in {} is empty, so messages are not signed: every user and every program of this machine can run code as you; set Session.key in Jupyter's configuration",
                self.path.display()
            )
        })
    }

    /// Where a channel listens.
    pub fn endpoint(&self, channel: &str) -> Result<Endpoint> {
        let port = &self.content[format!("{channel}_port")];
        let number = port.as_u64().and_then(|p| u16::try_from(p).ok());
        let number = number.with_context(|| {
            format!(
                "{}: {channel}_port is {port}, but must be a port from 0 to 65535",
                self.path.display()
            )
        })?;
        let ip = self.content["ip"].as_str().unwrap_or("127.0.0.1");
        match self.content["transport"].as_str().unwrap_or("tcp") {
            "tcp" => Ok(Endpoint::Tcp(ip.into(), number)),
            "ipc" => Ok(Endpoint::Ipc(format!("{ip}-{number}").into())),
            other => bail!(
                "{}: transport '{other}' is not supported; use 'tcp' or 'ipc'",
                self.path.display()
            ),
        }
    }

    /// Write the ports that were taken into the file where it said 0, so that clients find them.
    pub fn announce(&mut self, taken: &[(&str, &Endpoint)]) -> Result<()> {
        let before = self.content.clone();
        for (channel, endpoint) in taken {
            if let Endpoint::Tcp(_, port) = endpoint {
                self.content[format!("{channel}_port")] = json!(port);
            }
        }
        if before == self.content {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&self.content)?;
        // In place: the file is readable by its owner only, and must stay so.
        std::fs::write(&self.path, text)
            .with_context(|| format!("cannot write ports into {}", self.path.display()))
    }
}

/// The key of the signatures. Whoever reaches a port runs code unless there is one, so a file without it is not guessed at.
fn key(path: &Path, content: &Value) -> Result<Vec<u8>> {
    let found = match content.get("key") {
        Some(Value::String(key)) => return Ok(key.as_bytes().to_vec()),
        Some(other) => format!("the key is {other}, but must be a string"),
        None => "there is no key".into(),
    };
    bail!(
        "cannot use the connection file {}: {found}; messages are signed with it, and without a signature anybody who reaches a port could run code as you. Let Jupyter write the file, or set \"key\" to a secret of your own",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &Value) -> Result<Connection> {
        let folder = std::env::temp_dir().join(format!("connection-{}", super::super::id::fresh()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("kernel.json");
        std::fs::write(&path, content.to_string()).unwrap();
        let connection = Connection::read(&path);
        std::fs::remove_dir_all(&folder).unwrap();
        connection
    }

    fn file() -> Value {
        json!({
            "shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5,
            "ip": "127.0.0.1", "key": "abc", "transport": "tcp", "signature_scheme": "hmac-sha256",
        })
    }

    #[test]
    fn endpoints_follow_the_transport() {
        let tcp = read(&file()).unwrap();
        assert_eq!(tcp.key, b"abc");
        assert_eq!(tcp.endpoint("hb").unwrap().to_string(), "tcp://127.0.0.1:5");
        let mut ipc = file();
        ipc["transport"] = json!("ipc");
        ipc["ip"] = json!("/tmp/k");
        let ipc = read(&ipc).unwrap();
        assert_eq!(ipc.endpoint("shell").unwrap().to_string(), "ipc:///tmp/k-1");
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_name() {
        for (key, value) in [
            ("shell_port", json!("x")),
            ("hb_port", json!(70_000)),
            ("transport", json!("pgm")),
            ("signature_scheme", json!("hmac-md5")),
        ] {
            let mut content = file();
            content[key] = value.clone();
            let error = format!("{:#}", read(&content).unwrap_err());
            let value = value.to_string();
            assert!(error.contains(value.trim_matches('"')), "{error}");
        }
    }

    #[test]
    fn without_a_key_only_this_machine_is_served() {
        for key in [None, Some(json!(5)), Some(json!(null)), Some(json!(["x"]))] {
            let mut content = file();
            match &key {
                Some(key) => content["key"] = key.clone(),
                None => drop(content.as_object_mut().unwrap().remove("key")),
            }
            let error = format!("{:#}", read(&content).unwrap_err());
            assert!(
                error.contains("set \"key\" to a secret"),
                "{key:?}: {error}"
            );
        }
        let mut open = file();
        open["key"] = json!("");
        for ip in ["127.0.0.1", "127.5.0.1", "localhost", "::1"] {
            open["ip"] = json!(ip);
            let warning = read(&open).unwrap().warning().unwrap();
            assert!(warning.contains("not signed"), "{warning}");
        }
        for ip in ["0.0.0.0", "*", "::", "192.0.2.1"] {
            open["ip"] = json!(ip);
            let error = format!("{:#}", read(&open).unwrap_err());
            assert!(error.contains("other machines"), "{ip}: {error}");
        }
        assert!(read(&file()).unwrap().warning().is_none());
    }

    #[test]
    fn encryption_is_refused_rather_than_left_out() {
        let mut content = file();
        content["curve_secretkey"] = json!("x");
        let error = read(&content).unwrap_err().to_string();
        assert!(error.contains("CurveZMQ"), "{error}");
    }
}
