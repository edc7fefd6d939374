SELECT greatest(count(*), 1)::integer FROM oncebox.unanswered AS u WHERE u.key = $1;
