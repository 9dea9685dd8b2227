//! The requested scenario, with replacements for its settings.

use super::args::Replacements;
use anyhow::{Context, bail};
use gleaner_simulator::applications::Application;
use gleaner_simulator::gms;
use gleaner_simulator::servers;
use gleaner_simulator::sweep::{SHIPPED, ScenarioFile, ShippedScenario};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A scenario's file.
pub(super) struct ScenarioText {
    /// Name of the scenario.
    pub(super) name: String,
    /// Origin of the scenario, for messages.
    pub(super) origin: String,
    pub(super) text: String,
    /// True for a shipped scenario, whose start belongs to the datasets named in its comments.
    pub(super) is_shipped: bool,
    /// Folder to which the scenario's paths are relative.
    folder: PathBuf,
}

impl ScenarioText {
    /// Place of a dataset or file that the scenario names.
    pub(super) fn place(&self, named: &Path) -> PathBuf {
        place_of(named, &self.folder)
    }
}

/// Finds a shipped scenario by its name, otherwise reads a file.
pub(super) fn find(asked: &str) -> anyhow::Result<ScenarioText> {
    if let Some(shipped) = ShippedScenario::named(asked) {
        return Ok(ScenarioText {
            name: shipped.name.to_owned(),
            origin: format!("scenario {}", shipped.name),
            text: shipped.text.to_owned(),
            is_shipped: true,
            folder: PathBuf::new(),
        });
    }
    if let Some((name, text)) = gms::SHIPPED
        .iter()
        .chain(servers::SHIPPED.iter())
        .find(|(name, _)| *name == asked)
    {
        return Ok(ScenarioText {
            name: (*name).to_owned(),
            origin: format!("scenario {name}"),
            text: (*text).to_owned(),
            is_shipped: true,
            folder: PathBuf::new(),
        });
    }
    let path = Path::new(asked);
    let text = match std::fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let names = SHIPPED.map(|shipped| shipped.name);
            let of_gms = gms::SHIPPED.map(|(name, _)| name);
            let of_servers = servers::SHIPPED.map(|(name, _)| name);
            let names = [&names[..], &of_gms[..], &of_servers[..]]
                .concat()
                .join(", ");
            bail!(
                "{asked}: there is no such file; the scenarios that come with Gleaner are {names}"
            )
        }
        read => read.with_context(|| asked.to_owned())?,
    };
    let name = path.file_stem().unwrap_or(path.as_os_str());
    Ok(ScenarioText {
        name: name.to_string_lossy().into_owned(),
        origin: asked.to_owned(),
        text,
        is_shipped: false,
        folder: path.parent().map(Path::to_owned).unwrap_or_default(),
    })
}

/// Plan of the runs, and names and folders of the datasets.
pub(super) fn read(
    found: &ScenarioText,
    instead: &Replacements,
) -> anyhow::Result<(ScenarioFile, Vec<(String, PathBuf)>)> {
    let mut file = ScenarioFile::parse(&found.text).with_context(|| found.origin.clone())?;
    for swept in &instead.sweep {
        file.set_sweep(swept.clone());
    }
    if !instead.program.is_empty() {
        if file.clients.is_some() {
            bail!(
                "--program {}: {} has `clients`, which run in the place of programs",
                instead.program.join(","),
                found.origin
            );
        }
        let programs = instead.program.iter().map(|name| program(name));
        file.programs = Some(programs.collect::<anyhow::Result<_>>()?);
    }
    if !instead.seed.is_empty() {
        file.seeds.clone_from(&instead.seed);
    }
    if let Some(from) = &instead.from {
        check_from(from)?;
        file.from = Some(from.clone());
    }
    file.days = instead.days.unwrap_or(file.days);
    for client in file.clients.iter_mut().flatten() {
        client.stream = found.folder.join(&client.stream);
    }
    let folders = folders(&file.datasets, found, instead)?;
    Ok((file, folders))
}

/// Names and folders of the datasets: the scenario's, or those given instead.
pub(super) fn folders(
    datasets: &BTreeMap<String, PathBuf>,
    found: &ScenarioText,
    instead: &Replacements,
) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let own = datasets.iter();
    let own = own.map(|(name, place)| (name.clone(), found.place(place)));
    let folders: Vec<(String, PathBuf)> = match &instead.dataset[..] {
        [] => own.collect(),
        others => others.to_vec(),
    };
    for (at, (name, _)) in folders.iter().enumerate() {
        if folders[..at].iter().any(|(other, _)| other == name) {
            bail!("two datasets are called {name}: write --dataset NAME=DIR");
        }
    }
    Ok(folders)
}

/// Checks the begin that is given instead of the scenario's.
pub(super) fn check_from(from: &str) -> anyhow::Result<()> {
    let instant = crate::values::instant(from).map_err(anyhow::Error::msg);
    instant.with_context(|| format!("--from {from}"))?;
    Ok(())
}

/// Place of a dataset that a scenario in `folder` names: a URL, or a path relative to the folder.
fn place_of(place: &Path, folder: &Path) -> PathBuf {
    match place.to_str() {
        Some(url) if url.contains("://") => place.to_owned(),
        _ => folder.join(place),
    }
}

fn program(name: &str) -> anyhow::Result<Application> {
    let known = Application::ALL.into_iter().find(|a| a.name() == name);
    known.with_context(|| {
        let names = Application::ALL.map(Application::name).join(", ");
        format!("--program {name}: there are {names}")
    })
}
