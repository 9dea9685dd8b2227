//! The table of applications, with all code generated from it.

/// Makes applications known to the simulator, its scenarios and the command line: one row per application.
///
/// Each row has documentation, the name in scenarios and results, the variant of
/// [`Application`](super::Application), and the type of its [`Run`](super::Run).
macro_rules! applications {
    ($($(#[$doc:meta])* $name:literal => $application:ident($module:ident::$run:ident);)*) => {
        /// Programs that the simulator knows.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        pub enum Application {
            $($(#[$doc])* #[serde(rename = $name)] $application,)*
        }

        impl Application {
            /// All applications, in the order of the table.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$application),*];

            /// Name in scenarios and results; the study's programs have the study's spelling.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$application => $name,)*
                }
            }

            /// Compute time before each request ([`Run::THINK_NS`]).
            #[must_use]
            pub const fn think_ns(self) -> u64 {
                match self {
                    $(Self::$application => <$module::$run as Run>::THINK_NS,)*
                }
            }

            /// Returns true if the compute time was calibrated ([`Run::IS_CALIBRATED`]).
            #[must_use]
            pub const fn is_calibrated(self) -> bool {
                match self {
                    $(Self::$application => <$module::$run as Run>::IS_CALIBRATED,)*
                }
            }
        }

        impl Program for PacedApplication {
            type Stream = Stream;

            fn layout(&self) -> Layout {
                match self.application {
                    $(Application::$application => <$module::$run as Run>::LAYOUT,)*
                }
            }

            fn run(&self, seed: u64, number: u64) -> Stream {
                let mut dice: ChaCha8Rng = rand::SeedableRng::seed_from_u64(seed);
                dice.set_stream(number);
                match self.application {
                    $(Application::$application => {
                        Stream::$application(Run::new(self.think_ns, dice))
                    })*
                }
            }

            fn keeps_regions(&self) -> bool {
                match self.application {
                    $(Application::$application => <$module::$run as Run>::KEEPS_REGIONS,)*
                }
            }

            fn processes(&self) -> u32 {
                match self.application {
                    $(Application::$application => <$module::$run as Run>::PROCESSES,)*
                }
            }
        }

        /// Requests of one run of an [`Application`].
        #[derive(Clone, Debug)]
        pub enum Stream {
            $($(#[$doc])* $application($module::$run),)*
        }

        impl Iterator for Stream {
            type Item = Request;

            // Inlined into the caller: a call would write the request to memory in pieces of other sizes than
            // those that the caller reads back, which is slow.
            #[inline(always)]
            fn next(&mut self) -> Option<Request> {
                match self {
                    $(Self::$application(run) => run.next(),)*
                }
            }
        }
    };
}
pub(super) use applications;
