group! {
    bitbucket,
    github,
    gitlab,
    liveblocks,
    supabase_auth_hooks,
}
