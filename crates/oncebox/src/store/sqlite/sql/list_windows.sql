SELECT source, payloads_s, identities_s FROM source_windows;
