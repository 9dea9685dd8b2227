//! Reports by sites: a page for each site of a fleet, and a page for all hosts together.
//!
//! ```text
//! file (which hosts are where) ─► plan, site after site ─► each site: part ─► its findings ─► its page
//!                                                                      └► stored ─► merged ─► page of all hosts
//! ```
//!
//! Memory for a site's page is bounded by the site. Each site's part is kept in its small stored form until the
//! parts are merged for the page of all hosts.

mod file;
mod stored;

use super::analyses::{self, Analyses};
use super::files::{beside, url_path};
use super::folder;
use super::job::{Job, heading};
use anyhow::Context;
use gleaner_analysis::{Part, Plan, analyze_part, analyze_site};
use gleaner_reports::{Options, Report, Site, SiteFigures, numbered, site_figures};
use gleaner_schemas::findings::{IdlePeriod, MemoryPoint, TopFile};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use stored::StoredSite;

/// Page of all hosts, and the pages of the sites.
pub(super) struct FleetPage {
    pub(super) report: Report,
    pub(super) html: String,
    /// Name and address of each site's page, relative to the page of all hosts.
    pub(super) sites: Vec<(String, String)>,
}

/// Sites with hosts, and the plans by which they are analysed.
struct Fleet<'a> {
    job: &'a Job<'a>,
    sites: Vec<SitePlan>,
    now: Plan,
    /// Plan of the time before; absent without a comparison.
    before: Option<Plan>,
    /// Folder of the sites' pages.
    folder: PathBuf,
}

/// A site with hosts.
struct SitePlan {
    name: String,
    /// Name for readers, which in an anonymous report is a number.
    label: String,
    /// Positions of the site's hosts in the plans.
    hosts: Range<usize>,
}

/// Makes the requested pages of sites, and the page of all hosts unless only sites are requested.
pub(super) fn run(job: &Job<'_>, file: &Path) -> anyhow::Result<Option<FleetPage>> {
    let fleet = Fleet::new(job, file)?;
    let args = &job.args.sites;
    let known = || fleet.sites.iter().map(|site| site.name.as_str());
    if let Some(unknown) = args
        .only
        .iter()
        .find(|name| known().all(|site| site != *name))
    {
        let known: Vec<&str> = known().collect();
        anyhow::bail!(
            "there is no site {unknown:?} with hosts: there are {}",
            known.join(", ")
        );
    }
    if let Some(folder) = &job.args.habit.folder {
        folder::begin(folder)?;
    }
    fs::create_dir_all(&fleet.folder)
        .with_context(|| format!("cannot write {}", fleet.folder.display()))?;
    if !args.only.is_empty() {
        let is_meant = |site: &&SitePlan| args.only.contains(&site.name);
        for site in fleet.sites.iter().filter(is_meant) {
            fleet.make(site)?.keep(&fleet.folder, &site.name)?;
        }
        return Ok(None);
    }
    let sites = fleet.sites.iter().map(|site| match args.is_fleet {
        true => StoredSite::read(&fleet.folder, &site.name),
        false => fleet.make(site),
    });
    let sites = sites.collect::<anyhow::Result<Vec<StoredSite>>>()?;
    fleet.page(sites).map(Some)
}

/// Removes the parts that `--site` kept, when the page of all hosts is written.
pub(super) fn remove_parts(page: &Path) -> anyhow::Result<()> {
    stored::remove_all(&beside(page, "-sites"))
}

impl<'a> Fleet<'a> {
    fn new(job: &'a Job<'a>, file: &Path) -> anyhow::Result<Self> {
        let hosts = job.dataset.hosts()?.into_iter().map(|id| (id, None));
        let mut hosts: BTreeMap<String, Option<String>> = hosts.collect();
        for (id, name) in job.dataset.host_names()? {
            hosts.insert(id, Some(name));
        }
        let sites = file::read(file, &hosts)?;
        let by_sites = |plan: Plan| plan.by_groups(sites.names.len(), |host| sites.of(host));
        let parameters = analyses::parameters(job.asked, job.args);
        let (now, ranges) = by_sites(Plan::new(job.dataset, &parameters)?);
        let before = job.before().map(|span| {
            let parameters = analyses::parameters_before(&now.parameters, span);
            anyhow::Ok(by_sites(Plan::new(job.dataset, &parameters)?).0)
        });
        let before = before.transpose()?;
        let with_hosts = sites.names.iter().zip(ranges);
        let with_hosts = with_hosts.filter(|(_, hosts)| !hosts.is_empty());
        let numbers = job.args.anonymous.then(|| {
            let names = with_hosts.clone().map(|(name, _)| name.clone());
            numbered("site", names.collect())
        });
        let label = |name: &String| {
            let number = numbers.as_ref().and_then(|numbers| numbers.get(name));
            number.unwrap_or(name).clone()
        };
        let plans = with_hosts.map(|(name, hosts)| SitePlan {
            name: name.clone(),
            label: label(name),
            hosts,
        });
        let mut plans: Vec<SitePlan> = plans.collect();
        if job.args.anonymous {
            // The file's order would reveal which site is which.
            plans.sort_by(|a, b| a.label.cmp(&b.label));
        }
        Ok(Self {
            job,
            sites: plans,
            now,
            before,
            folder: beside(&job.page(), "-sites"),
        })
    }

    /// Analyses a site, writes its page, and returns its results for the page of all hosts.
    fn make(&self, site: &SitePlan) -> anyhow::Result<StoredSite> {
        let analyse = |plan: &Plan| {
            let plan = plan.part(site.hosts.clone())?;
            let label = format!("site {}", site.label);
            let bar = gleaner_terminal::bar(&label, plan.hosts_count() as u64);
            let part = analyze_site(self.job.dataset, &plan, &mut |p| {
                bar.set_position(p.hosts_done as u64);
            })?;
            bar.finish_and_clear();
            anyhow::Ok(part)
        };
        let now = analyse(&self.now)?;
        let before = self.before.as_ref().map(analyse).transpose()?;
        let mut of_fleet = now.clone();
        leave_out(&mut of_fleet, self.job.zone);
        let now_bytes = of_fleet.to_bytes()?;
        drop(of_fleet);
        let before_bytes = before.as_ref().map(Part::to_bytes).transpose()?;
        let whose = format!(" of site {}", site.label);
        let figures = match analyses::of_parts(now, before, &whose)? {
            Some(measured) => self.site_page(site, measured)?,
            None => {
                let mut stderr = std::io::stderr();
                let _ = writeln!(
                    stderr,
                    "gleaner: nothing was recorded{whose} in that time: it has no page"
                );
                None
            }
        };
        Ok(StoredSite {
            now: now_bytes,
            before: before_bytes,
            figures,
        })
    }

    fn site_page(
        &self,
        site: &SitePlan,
        measured: Analyses,
    ) -> anyhow::Result<Option<SiteFigures>> {
        let heading = heading(&measured.now, self.job.args);
        let options = self.job.options(match self.job.args.title {
            Some(_) => format!("{heading}: {}", site.label),
            None => format!("{heading} at {}", site.label),
        });
        let report = Report::new(&measured.now, measured.before.as_ref(), &options)?;
        let figures = site_figures(&measured.now, &options)?;
        drop(measured);
        let page = self.folder.join(format!("{}.html", site.file_stem()));
        self.job.write(&page, &report, &report.html()?)?;
        Ok(figures)
    }

    /// Page of all hosts, from the results of every site.
    fn page(&self, results: Vec<StoredSite>) -> anyhow::Result<FleetPage> {
        let address = url_path(Path::new(self.folder.file_name().unwrap_or_default()));
        let mut sites = Vec::with_capacity(results.len());
        let (mut now, mut before) = (Vec::new(), Vec::new());
        for (site, result) in self.sites.iter().zip(results) {
            now.push(result.now);
            if self.before.is_some() {
                before.push(result.before.with_context(|| {
                    format!(
                        "the part of site {} has no time before to compare with: make the site's page again with \
                         the options of this command",
                        site.name
                    )
                })?);
            }
            let page = || format!("{address}/{}.html", site.file_stem());
            let hosts = self.now.hosts().get(site.hosts.clone());
            sites.push(Site {
                name: site.label.clone(),
                page: result.figures.as_ref().map(|_| page()),
                hosts: hosts.unwrap_or_default().to_vec(),
                figures: result.figures,
            });
        }
        let now = self.merged(&self.now, now)?;
        let before = self.before.as_ref().map(|plan| self.merged(plan, before));
        let Some(measured) = analyses::of_parts(now, before.transpose()?, "")? else {
            return Err(self.job.nothing().into());
        };
        let pages = sites
            .iter()
            .filter_map(|site| Some((site.name.clone(), site.page.clone()?)));
        let pages = pages.collect();
        let options = Options {
            sites: Some(sites),
            ..self.job.options(heading(&measured.now, self.job.args))
        };
        let report = Report::new(&measured.now, measured.before.as_ref(), &options)?;
        drop(measured);
        let html = report.html()?;
        Ok(FleetPage {
            report,
            html,
            sites: pages,
        })
    }

    /// Merges the parts of all sites, in their order. Refuses a part of another analysis than the plan's.
    fn merged(&self, plan: &Plan, parts: Vec<Vec<u8>>) -> anyhow::Result<Part> {
        let mut merged = analyze_part(self.job.dataset, &plan.part(0..0)?, &mut |_| ())?;
        for (site, part) in self.sites.iter().zip(parts) {
            let origin = format!("the part of site {}", site.name);
            merged = merged.merge(Part::from_bytes(&part, &origin)?, &origin)?;
        }
        Ok(merged)
    }
}

impl SitePlan {
    /// Name of the page's file without `.html`.
    fn file_stem(&self) -> String {
        self.label.replace(' ', "-")
    }
}

/// Removes records that the page of all hosts does not need. Of memory over time it needs only the days on which a
/// host has samples.
fn leave_out(part: &mut Part, zone: &TimeZone) {
    let mut last: Option<(String, Option<Date>)> = None;
    part.retain_records(|point: &MemoryPoint| {
        let day = Timestamp::from_millisecond(point.time_ms).ok();
        let day = day.map(|time| time.to_zoned(zone.clone()).date());
        let is_known = last
            .as_ref()
            .is_some_and(|(h, d)| *h == point.host_id && *d == day);
        if !is_known {
            last = Some((point.host_id.clone(), day));
        }
        !is_known
    });
    part.retain_records(|_: &IdlePeriod| false);
    part.retain_records(|_: &TopFile| false);
}
