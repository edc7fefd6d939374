-- Who began an effect and gave no answer before somebody else took it over, or a person said what
-- came of it: a row for each lease. What one of those says later is evidence, and what anybody else
-- says is not. It outlives the effect: a person who says that it did not happen may be wrong.
CREATE TABLE oncebox.unanswered (
    receipt uuid NOT NULL,
    epoch bigint NOT NULL,
    at timestamptz NOT NULL,
    attempt integer NOT NULL,
    route smallint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('once', 'step')),
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (key, receipt, route, epoch)
);

-- As before, and refuses the keys of steps as well: whoever could take one could have another
-- route's stage skipped.
CREATE OR REPLACE FUNCTION oncebox.once(key text, result jsonb DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = oncebox, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    work record := oncebox.current_work();
    written text := oncebox.check_result(result);
    taken text;
BEGIN
    key := oncebox.check_name('key', key COLLATE "default");
    IF starts_with(key COLLATE "default", 'outbox/') THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('the key %s begins with outbox/, as those of messages do', key),
            'Choose another.'
        );
    END IF;
    IF key COLLATE "default" ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/' THEN
        PERFORM oncebox.refuse(
            'OB400',
            format('the key %s begins with a UUID and a slash, as those of steps do', key),
            'Call oncebox.step for a stage of this delivery; otherwise put a word before it, as '
            'in order:UUID.'
        );
    END IF;
    taken := oncebox.take_effect(
        key COLLATE "default", 'once', work.receipt, work.route, work.lease, work.attempt, written
    );
    IF taken = 'open' THEN
        PERFORM oncebox.refuse_open(key);
    END IF;
    RETURN taken = 'first';
END
$$;
