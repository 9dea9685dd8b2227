//! Sets up all parts of a recruiter for `gleaner-recruiter run`.

use crate::Error;
use crate::args::RunArgs;
use crate::config::Config;
use crate::export::Targets;
use crate::forecasts::Forecasts;
use crate::http::{self, App};
use crate::state::RecruiterState;
use gleaner_daemon::listen::{
    Limits, Signals, allow_descriptors, bind, follow_files, serve, until_ended,
};
use gleaner_trust::ServerTrust;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};

/// Interval at which changes are sent to watching readers and silent hosts are removed.
const TICK: Duration = Duration::from_millis(250);
/// Minimum interval between two replacements of the files of quotas.
const EXPORT: Duration = Duration::from_secs(1);
/// Interval of checks of the findings' file.
const FORESEE: Duration = Duration::from_secs(10);

/// Runs a recruiter until SIGTERM or SIGINT. On SIGHUP it reads the configuration again.
///
/// # Errors
/// The recruiter cannot start.
pub fn run(args: &RunArgs) -> Result<(), Error> {
    let config = &Config::resolve(args)?;
    allow_descriptors();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::io("start threads for", "the recruiter"))?;
    let ended = runtime.block_on(async {
        let signals = Signals::take().map_err(Error::io("wait for", "signals"))?;
        let state = Arc::new(RecruiterState::new(config));
        let app = Arc::new(App::new(Arc::clone(&state), config));
        if let Some(path) = &config.forecasts {
            let mut forecasts = Forecasts::new(path.clone());
            forecasts.reload_if_changed()?; // at the start a fault is an error
            state.registry().foresee(forecasts.now());
            tokio::spawn(foresee(Arc::clone(&state), forecasts));
        }
        tokio::spawn(tick(Arc::clone(&app), targets(config)));
        let mut status = Vec::new();
        for (scheme, address) in listen(config, app).await? {
            let listening = format!("listening on {scheme}://{address}");
            eprintln!("gleaner-recruiter: {listening}");
            status.push(listening);
        }
        until_ended(signals, &status.join(", "), || reload(args, config, &state)).await;
        Ok(())
    });
    // Clients repeat requests in progress at the next recruiter. The leases are on their hosts.
    runtime.shutdown_timeout(Duration::from_secs(2));
    ended
}

fn targets(config: &Config) -> Targets {
    Targets {
        json: config.quota_file.clone(),
        prometheus: config.quota_textfile.clone(),
    }
}

/// Serves in the background, and returns the name and address of each listener.
async fn listen(config: &Config, app: Arc<App>) -> Result<Vec<(&'static str, SocketAddr)>, Error> {
    let router = http::router(Arc::clone(&app));
    let limits = Limits {
        connections: Arc::new(Semaphore::new(config.connections_limit)),
        shares: None,
        reader_timeout: config.reader_timeout,
    };
    let mut bound = Vec::new();
    if let Some((address, paths)) = &config.listen {
        let trust = ServerTrust::load_allowing_anonymous(paths)?;
        let (socket, address) = bind(*address).await.map_err(refused(*address))?;
        bound.push(("https", address));
        send_revocations(&app.state, &trust);
        let telling = Arc::clone(&app.state);
        let changed = move |trust: &ServerTrust| send_revocations(&telling, trust);
        tokio::spawn(follow_files(Arc::clone(&trust), changed, |error| {
            eprintln!("gleaner-recruiter: continues with its present certificates: {error}");
        }));
        let server = Arc::clone(&app);
        let served = serve(socket, Some(trust), limits.clone(), server, router.clone());
        tokio::spawn(served);
    }
    if let Some(address) = config.local_listen {
        let (socket, address) = bind(address).await.map_err(refused(address))?;
        bound.push(("http", address));
        tokio::spawn(serve(socket, None, limits, app, router));
    }
    Ok(bound)
}

/// Sends the revocation lists that this recruiter uses to all memory servers.
fn send_revocations(state: &RecruiterState, trust: &ServerTrust) {
    if let Err(why) = state.revocations.set(trust.revocations_pem()) {
        eprintln!("gleaner-recruiter: {why}");
    }
}

fn refused(address: SocketAddr) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Listen { address, source }
}

/// Removes silent hosts, publishes changes, and writes the files of quotas.
async fn tick(app: Arc<App>, targets: Targets) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut written: Option<Instant> = None;
    let mut is_news = true;
    let mut failure = String::new();
    loop {
        ticks.tick().await;
        let now_ms = app.state.now_ms();
        let (gone, changes) = {
            let mut registry = app.state.registry();
            (registry.sweep(now_ms), registry.take_changes())
        };
        for host_id in gone {
            eprintln!("gleaner-recruiter: host {host_id} missed three announcements: gone");
        }
        app.state.commons().tick(app.state.moment());
        if !changes.changed.is_empty() || !changes.gone.is_empty() {
            is_news = true;
            let telling = Arc::clone(&app);
            let told = tokio::task::spawn_blocking(move || telling.tell(&changes, now_ms));
            let _ = told.await; // the task does not panic
        }
        // The files are written even without a change, so that readers see that the writer runs.
        let announce_every_ms =
            u64::try_from(app.state.judging().announce_every_ms).unwrap_or_default();
        let due = if is_news {
            EXPORT
        } else {
            Duration::from_millis(announce_every_ms)
        };
        if targets.is_empty() || written.is_some_and(|at| at.elapsed() < due) {
            continue;
        }
        (written, is_news) = (Some(Instant::now()), false);
        let (state, targets) = (Arc::clone(&app.state), targets.clone());
        let work = move || {
            let seen = state.registry().quotas();
            targets.write(&seen, state.now_ms())
        };
        let said = match tokio::task::spawn_blocking(work).await {
            Ok(Ok(())) => String::new(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        if said != failure && !said.is_empty() {
            eprintln!("gleaner-recruiter: {said}; trying again");
        }
        failure = said;
    }
}

/// Updates the forecasts when the findings' file or the hour of the week changes.
async fn foresee(state: Arc<RecruiterState>, mut forecasts: Forecasts) {
    let mut ticks = interval(FORESEE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        state.registry().foresee(forecasts.now());
        ticks.tick().await;
        let work = move || {
            if let Err(error) = forecasts.reload_if_changed() {
                eprintln!("gleaner-recruiter: continues with its present forecasts: {error}");
            }
            forecasts
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(back) => forecasts = back,
            Err(error) => {
                eprintln!("gleaner-recruiter: no more forecasts: {error}");
                return;
            }
        }
    }
}

/// Reads the configuration again, and applies it.
fn reload(args: &RunArgs, config: &Config, state: &RecruiterState) {
    match Config::resolve(args) {
        Ok(next) => {
            state.configure(&next);
            eprintln!("gleaner-recruiter: the configuration was reloaded");
            let left_out = config.restart_keys(&next);
            if !left_out.is_empty() {
                let keys = left_out.join(", ");
                eprintln!("gleaner-recruiter: changes of {keys} take effect after a restart");
            }
        }
        Err(error) => {
            eprintln!("gleaner-recruiter: continues with its present settings: {error}");
        }
    }
}
