//! Salesforce outbound messages: no signature; a token in the URL, given to Salesforce.
//!
//! <https://help.salesforce.com/s/articleView?id=sf.workflow_managing_outbound_messages.htm>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "salesforce-outbound",
    title: "Salesforce outbound messages",
    docs: "https://help.salesforce.com/s/articleView?id=sf.workflow_managing_outbound_messages.htm",
    schemes: items![token_at(TokenPlace::Query(text("token")), TokenKind::Plain)],
    payload: Payload::Xml,
    batches: items![batch("Envelope/Body/notifications/Notification")],
    identity: items![id(item("/Id"))],
    object: items![item("/sObject/Id")],
    // Anything but an `Ack` of `true` is a failure.
    answer: Some(Answer::Exactly {
        status: 200,
        content_type: "text/xml",
        body: "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\">\
             <soapenv:Body><notificationsResponse \
             xmlns=\"http://soap.sforce.com/2005/09/outbound\"><Ack>true</Ack>\
             </notificationsResponse></soapenv:Body></soapenv:Envelope>",
    }),
    retry: "For up to 24 hours, with growing pauses.",
    retry_hours: 24,
    find_secret: "Make up a long random secret and add it to the endpoint URL of the outbound \
         message: `?token=...`.",
    notes: "Nothing is signed: whoever learns the URL can send. Up to 100 notifications come in one \
         request, each of which becomes an event. No type is named; one source per outbound \
         message keeps them apart.",
    sample_type: "unknown",
    sample_body: "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\">\
         <soapenv:Body><notifications xmlns=\"http://soap.sforce.com/2005/09/outbound\">\
         <OrganizationId>00Dsample</OrganizationId><Notification><Id>sample</Id>\
         <sObject><Id>003sample</Id></sObject></Notification></notifications>\
         </soapenv:Body></soapenv:Envelope>",
    sample_object: "0031200001IU6ZvAAL",
    ..BLANK
}
.provider();
