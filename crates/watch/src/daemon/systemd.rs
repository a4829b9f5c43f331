//! Messages to the service manager. Without one, they do nothing.

use sd_notify::NotifyState;
use std::time::Duration;

/// We are ready, also after a reload.
pub(crate) fn ready() {
    notify(&[NotifyState::Ready]);
}

/// The configuration is being read again.
pub(crate) fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        notify(&[NotifyState::Reloading, now]);
    }
}

/// We are about to end.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// The status line.
pub(crate) fn status(text: &str) {
    notify(&[NotifyState::Status(text)]);
}

/// We are alive.
pub(crate) fn alive() {
    notify(&[NotifyState::Watchdog]);
}

/// How often to send `alive`: twice as often as the service manager requires.
pub(crate) fn alive_every() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|time| time / 2)
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        tracing::debug!(event = "systemd", reason = %cause, "could not tell the service manager");
    }
}
