//! Retrieval, against servers of our own: what they may be asked, and what they must not get away with.

mod archive_limits;
mod archive_mail;
mod archive_pywb;
mod cache_folder;
mod cache_offline;
mod cache_rules;
mod cache_trouble;
mod cache_trust;
mod close_delimited;
mod content_codings;
mod fetch_bomb;
mod fetch_budget;
mod fetch_cache;
mod fetch_cli;
mod fetch_cli_hostile;
mod fetch_file;
mod fetch_ftp;
mod fetch_hostile;
mod fetch_http;
mod fetch_proxy;
mod idle_connections;
mod names_and_limits;
mod provenance;
mod proxies;
mod resolver;
mod resume;
