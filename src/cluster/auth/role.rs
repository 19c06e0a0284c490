//! Roles and their permissions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The role of a certificate holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Counts units and proves.
    Worker,
    /// Controls the campaign.
    Operator,
    /// Has read-only access.
    Viewer,
}

/// The action of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Lease units and report which are held.
    Sync,
    /// Submit a unit's tally.
    Complete,
    /// Give back a unit that could not be counted.
    Fail,
    /// Take tasks of proofs and submit the answers.
    Prove,
    /// Read the status of a campaign.
    Status,
    /// Read the status as a stream.
    Watch,
    /// Start a campaign.
    Submit,
    /// Pause, resume, cancel or drain.
    Control,
    /// Get a first certificate. The token authorises this, so no role is needed and none suffices.
    Enroll,
    /// Get the next certificate before the current one expires.
    Renew,
}

/// The error for a text that is not a role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a role; choose one of worker, operator, viewer")]
pub struct RoleError(String);

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Worker, Self::Operator, Self::Viewer];

    /// Returns the role's name, as used on the command line and in certificates.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Operator => "operator",
            Self::Viewer => "viewer",
        }
    }

    /// Returns whether the role allows `action`.
    pub const fn may(self, action: Action) -> bool {
        use Action as A;
        match action {
            A::Sync | A::Complete | A::Fail | A::Prove => matches!(self, Self::Worker),
            A::Status | A::Watch => matches!(self, Self::Operator | Self::Viewer),
            A::Submit | A::Control => matches!(self, Self::Operator),
            A::Renew => true,
            A::Enroll => false,
        }
    }
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 10] = [
        Self::Sync,
        Self::Complete,
        Self::Fail,
        Self::Prove,
        Self::Status,
        Self::Watch,
        Self::Submit,
        Self::Control,
        Self::Enroll,
        Self::Renew,
    ];
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sync => "sync",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::Prove => "prove",
            Self::Status => "status",
            Self::Watch => "watch",
            Self::Submit => "submit",
            Self::Control => "control",
            Self::Enroll => "enroll",
            Self::Renew => "renew",
        })
    }
}

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        Self::ALL
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| RoleError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_has_exactly_the_permissions_of_the_table() {
        let table = [
            // worker, operator, viewer
            (Action::Sync, [true, false, false]),
            (Action::Complete, [true, false, false]),
            (Action::Fail, [true, false, false]),
            (Action::Prove, [true, false, false]),
            (Action::Status, [false, true, true]),
            (Action::Watch, [false, true, true]),
            (Action::Submit, [false, true, false]),
            (Action::Control, [false, true, false]),
            (Action::Enroll, [false, false, false]),
            (Action::Renew, [true, true, true]),
        ];
        let mut printed = format!("{:<12}", "");
        for role in Role::ALL {
            printed += &format!("{role:>10}");
        }
        for (action, allowed) in table {
            printed += &format!("\n{action:<12}");
            for (role, allowed) in Role::ALL.into_iter().zip(allowed) {
                printed += &format!("{:>10}", if role.may(action) { "yes" } else { "-" });
                assert_eq!(role.may(action), allowed, "{role} {action}\n{printed}");
            }
        }
        std::io::Write::write_all(&mut std::io::stdout(), (printed + "\n").as_bytes())
            .expect("stdout");
        assert_eq!(table.map(|(action, _)| action), Action::ALL);
    }

    #[test]
    fn roles_round_trip_through_text() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
            assert_eq!(serde_json::to_value(role).expect("a string"), role.name());
        }
        let error = "admin".parse::<Role>().expect_err("no role");
        assert_eq!(
            error.to_string(),
            "'admin' is not a role; choose one of worker, operator, viewer"
        );
        assert!("Worker".parse::<Role>().is_err() && "".parse::<Role>().is_err());
    }
}
