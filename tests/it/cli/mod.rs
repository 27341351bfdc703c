//! The program: options, standard streams, signals, and failures of the system.

mod command_line;
mod compare;
mod compare_proof;
mod config_file;
mod dry_run;
mod duplicates;
mod faults;
mod first_minutes;
mod killed;
mod merge;
mod merge_stopped;
mod milter;
mod no_response;
mod outputs;
mod preset;
mod python;
mod referee;
mod refused;
mod report_file;
mod signals;
mod standard_streams;
mod summary;
mod survey;
mod survey_counts;
mod survey_page;
mod survey_run;
