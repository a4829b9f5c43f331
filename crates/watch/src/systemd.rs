//! What the service manager is told. Without one, nothing is.

use sd_notify::NotifyState;
use std::time::Duration;

/// That we are ready, also after a reload.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// That the configuration is being read anew.
pub(crate) fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// That we are about to end.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// One line on how things are.
pub(crate) fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// That we are alive.
pub(crate) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// How often it wants to know that: twice as often as it asks for.
pub(crate) fn alive_every() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|time| time / 2)
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        tracing::debug!(event = "systemd", reason = %cause, "could not tell the service manager");
    }
}
