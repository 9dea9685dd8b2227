//! Who may speak to whom: certificates, their making, renewal and revocation, and enrolment.
