//! Sources that accept proofs of several strengths: once the strongest came, no weaker one counts.

use crate::bed::{Bed, Place, configuration};

const SIGNING: &str = "whsec_Y2FuYXJ5LWdpdGxhYi1zaWduaW5nLXRva2Vu";
const STATIC: &str = "canary-gitlab-static-token";

fn sources(more: &str) -> String {
    format!(
        "[sources.gitlab]\nprovider = \"gitlab\"\nsecrets = [\"{SIGNING}\", \"{STATIC}\"]\n{more}\n"
    )
}

async fn on_each_store() -> [Bed; 2] {
    let sqlite = Bed::on_place(Place::sqlite(), &sources("")).await;
    [sqlite, Bed::on_place(Place::postgres().await, &sources("")).await]
}

const WEAKER: &str = r#"oncebox_rejections_total{source="gitlab",reason="weaker_scheme"}"#;

/// Who captured a request could otherwise remove its signature and keep its token.
#[tokio::test]
async fn the_first_signature_makes_signatures_required() {
    for bed in on_each_store().await {
        let post = async |bed: &Bed, secret: &str, id: &str| {
            bed.post("gitlab", &bed.signed("gitlab", secret, id)).await
        };
        assert_eq!(post(&bed, STATIC, "evt_1").await.status, 202, "nothing stronger came yet");
        assert_eq!(post(&bed, SIGNING, "evt_2").await.status, 202);
        post(&bed, STATIC, "evt_3").await.assert_rejected("a token beside signatures");
        assert_eq!(bed.metric(WEAKER).await, 1.0);

        let bed = bed.restarted_after(1).await;
        post(&bed, STATIC, "evt_4").await.assert_rejected("a token after a restart");
        assert_eq!(post(&bed, SIGNING, "evt_5").await.status, 202);

        // The operator has the last word. Without a signature the same body is the same event.
        for (scheme, believed) in [("token", [true, false]), ("any", [true, true])] {
            let chosen = sources(&format!("scheme = \"{scheme}\""));
            bed.server.reload(configuration(&chosen)).await.unwrap();
            let token = post(&bed, STATIC, &format!("{scheme}_1")).await.status;
            let signature = post(&bed, SIGNING, &format!("{scheme}_2")).await.status;
            assert_eq!([token, signature].map(|status| status < 300), believed, "{scheme}");
        }
    }
}

#[tokio::test]
async fn another_process_hears_of_it() {
    for bed in on_each_store().await {
        let token = |id: &str| bed.signed("gitlab", STATIC, id);
        assert_eq!(bed.post("gitlab", &token("evt_1")).await.status, 202);
        let inbox = &bed.server.inbox;
        let live = inbox.live();
        let number = live.sources.find("gitlab").unwrap().number;
        assert!(inbox.store.require_strongest(number).await.unwrap());
        live.sources.refresh_strongest(&*inbox.store).await.unwrap();
        bed.post("gitlab", &token("evt_2")).await.assert_rejected("a token");
    }
}
