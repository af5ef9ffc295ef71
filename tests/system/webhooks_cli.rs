//! `webhooks`: what people do with endpoints, on the command line.

use crate::program::run_with;
use crate::server::Folder;
use standardwebhooks::Webhook;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_of_another_library_is_checked_by_hand() {
    let folder = Folder::new();
    let file = folder.path().join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let file = file.to_str().unwrap();
    let (timestamp, body) = (1_649_367_553, r#"{"type":"task_failed"}"#);
    let signer = Webhook::new(SECRET).unwrap();
    let signature = signer.sign("msg_1", timestamp, body.as_bytes()).unwrap();
    let verify = async |id: &str, body: &str| {
        let timestamp = timestamp.to_string();
        let arguments = [
            "webhooks",
            "verify",
            "--secret-file",
            file,
            "--id",
            id,
            "--timestamp",
            &timestamp,
            "--signature",
            &signature,
        ];
        run_with(arguments, folder.path(), body).await
    };

    let good = verify("msg_1", body).await.done();
    assert!(good.starts_with("the signature is good\n"), "{good}");
    assert!(good.contains("old: a receiver should refuse it"), "{good}");
    for bad in [verify("msg_2", body).await, verify("msg_1", "{}").await] {
        assert_eq!(bad.code, Some(1), "{bad:?}");
        assert!(bad.out.contains("NOT good"), "{bad:?}");
    }
}
