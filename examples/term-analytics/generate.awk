# SPDX-License-Identifier: PostgreSQL
#
# Events of an indexer, as commands for redis-cli --pipe: from number FROM on, COUNT of them, at the time NOW.
function term(n) { return sprintf("0x%064x", n) }
function bulk(text) { printf "$%d\r\n%s\r\n", length(text), text }
function event(name, args)
{
    printf "*5\r\n"
    bulk("XADD"); bulk("events"); bulk("*"); bulk("data")
    bulk(sprintf("{\"event_name\": \"%s\", \"block_number\": %d, \"log_index\": %d, \"transaction_hash\": \"0x%064x\", \"block_timestamp\": %s, \"args\": {%s}}",
                 name, n / 50, n % 50, n * 7919, NOW, args))
}
BEGIN {
    TERMS = 500; ACCOUNTS = 2000
    srand(FROM + 1)
    for (n = FROM; n < FROM + COUNT; n++) {
        id = n < TERMS ? n : int(rand() * TERMS)
        where = sprintf("\"term_id\": \"%s\", \"curve\": %d", term(id), 1 + id % 2)
        if (n < TERMS && n % 5 == 4)
            event("TripleCreated", sprintf("\"term_id\": \"%s\", \"subject\": \"%s\", \"predicate\": \"%s\", \"object\": \"%s\"", term(id), term(id - 1), term(id - 2), term(id - 3)))
        else if (n < TERMS)
            event("AtomCreated", sprintf("\"term_id\": \"%s\", \"creator\": \"0x%040x\"", term(id), n))
        else if (n % 5000 == 777)
            event("Vanished", where)
        else if (n % 10 < 6)
            event("Deposited", sprintf("%s, \"account\": \"0x%040x\", \"shares\": \"%d\", \"assets\": \"%d\"", where, int(rand() * ACCOUNTS), 1 + rand() * 1000, 1 + rand() * 1000))
        else if (n % 10 < 8)
            event("Redeemed", sprintf("%s, \"account\": \"0x%040x\", \"shares\": \"%d\", \"assets\": \"%d\"", where, int(rand() * ACCOUNTS), 1 + rand() * 100, 1 + rand() * 100))
        else
            event("SharePriceChanged", sprintf("%s, \"price\": \"%.6f\"", where, 0.5 + rand()))
    }
}
