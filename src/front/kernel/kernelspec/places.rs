//! Where Jupyter looks for kernels, by the rules of `jupyter_core.paths`.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// Where to install a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// For this user.
    User,
    /// For an environment: a virtual environment or conda's, or `/usr/local` for everyone.
    Prefix(PathBuf),
    /// In this folder of kernels.
    Folder(PathBuf),
}

impl Target {
    /// The folder that holds the folders of the kernels.
    pub(super) fn kernels(&self, around: &Surroundings) -> Result<PathBuf> {
        match self {
            Self::User => {
                let data = around.user_data().context(
                    "cannot tell where your Jupyter keeps kernels; set JUPYTER_DATA_DIR or HOME",
                )?;
                Ok(data.join("kernels"))
            }
            Self::Prefix(prefix) => Ok(prefix.join("share/jupyter/kernels")),
            Self::Folder(folder) => Ok(folder.clone()),
        }
    }
}

/// Which rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Windows,
    Mac,
    Other,
}

type Variable = Box<dyn Fn(&str) -> Option<PathBuf>>;

/// The system and its environment variables.
pub(super) struct Surroundings {
    system: System,
    variable: Variable,
}

impl Surroundings {
    /// Of this process.
    pub fn here() -> Self {
        let system = match std::env::consts::OS {
            "windows" => System::Windows,
            "macos" => System::Mac,
            _ => System::Other,
        };
        Self {
            system,
            variable: Box::new(|name| std::env::var_os(name).map(PathBuf::from)),
        }
    }

    /// The value of a variable; an empty one counts as none.
    fn get(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name).filter(|v| !v.as_os_str().is_empty())
    }

    fn home(&self) -> Option<PathBuf> {
        match self.system {
            System::Windows => self.get("USERPROFILE").or_else(|| self.get("HOME")),
            _ => self.get("HOME"),
        }
    }

    fn user_data(&self) -> Option<PathBuf> {
        if let Some(folder) = self.get("JUPYTER_DATA_DIR") {
            return Some(folder);
        }
        match self.system {
            System::Mac => Some(self.home()?.join("Library/Jupyter")),
            System::Windows => match self.get("APPDATA") {
                Some(folder) => Some(folder.join("jupyter")),
                None => {
                    let otherwise = || Some(self.home()?.join(".jupyter"));
                    Some(
                        self.get("JUPYTER_CONFIG_DIR")
                            .or_else(otherwise)?
                            .join("data"),
                    )
                }
            },
            System::Other => {
                let otherwise = || Some(self.home()?.join(".local/share"));
                Some(
                    self.get("XDG_DATA_HOME")
                        .or_else(otherwise)?
                        .join("jupyter"),
                )
            }
        }
    }

    /// All folders of kernels, the first to be looked at first.
    pub fn all_kernels(&self) -> Vec<PathBuf> {
        let mut data: Vec<PathBuf> = match self.get("JUPYTER_PATH") {
            Some(folders) => std::env::split_paths(&folders).collect(),
            None => Vec::new(),
        };
        // Python would say where it is installed; what is active in the shell is as near as we come.
        let active = ["VIRTUAL_ENV", "CONDA_PREFIX"];
        let active = active.iter().filter_map(|name| self.get(name));
        data.extend(active.map(|prefix| prefix.join("share/jupyter")));
        data.extend(self.user_data());
        match self.system {
            System::Windows => data.extend(self.get("PROGRAMDATA").map(|p| p.join("jupyter"))),
            _ => data.extend(["/usr/local/share/jupyter", "/usr/share/jupyter"].map(PathBuf::from)),
        }
        data.into_iter().map(|d| d.join("kernels")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(system: System, variables: &'static [(&str, &str)]) -> Surroundings {
        let variable = |name: &str| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| PathBuf::from(v))
        };
        Surroundings {
            system,
            variable: Box::new(variable),
        }
    }

    fn user(system: System, variables: &'static [(&str, &str)]) -> String {
        let kernels = Target::User.kernels(&around(system, variables));
        kernels.unwrap().to_string_lossy().replace('\\', "/")
    }

    #[test]
    fn the_users_folder_follows_jupyters_rules() {
        use System::{Mac, Other, Windows};
        let home = &[("HOME", "/h")];
        assert_eq!(user(Other, home), "/h/.local/share/jupyter/kernels");
        assert_eq!(user(Mac, home), "/h/Library/Jupyter/kernels");
        let xdg = &[("HOME", "/h"), ("XDG_DATA_HOME", "/x")];
        assert_eq!(user(Other, xdg), "/x/jupyter/kernels");
        assert_eq!(user(Mac, xdg), "/h/Library/Jupyter/kernels");
        let set = &[
            ("HOME", "/h"),
            ("JUPYTER_DATA_DIR", "/d"),
            ("APPDATA", "/a"),
        ];
        for system in [Other, Mac, Windows] {
            assert_eq!(user(system, set), "/d/kernels");
        }
        assert_eq!(user(Windows, &[("APPDATA", "/a")]), "/a/jupyter/kernels");
        assert_eq!(
            user(Windows, &[("USERPROFILE", "/u")]),
            "/u/.jupyter/data/kernels"
        );
        assert_eq!(
            user(Other, &[("HOME", "/h"), ("XDG_DATA_HOME", "")]),
            "/h/.local/share/jupyter/kernels"
        );
        assert!(Target::User.kernels(&around(Other, &[])).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn kernels_are_looked_for_in_order() {
        let variables = &[
            ("HOME", "/h"),
            ("JUPYTER_PATH", "/p:/q"),
            ("VIRTUAL_ENV", "/v"),
        ];
        let all = around(System::Other, variables).all_kernels();
        let all: Vec<_> = all.iter().map(|p| p.to_str().unwrap()).collect();
        assert_eq!(
            all,
            [
                "/p/kernels",
                "/q/kernels",
                "/v/share/jupyter/kernels",
                "/h/.local/share/jupyter/kernels",
                "/usr/local/share/jupyter/kernels",
                "/usr/share/jupyter/kernels",
            ]
        );
    }
}
