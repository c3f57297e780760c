"""Mail: MiniStack keeps what SES would send; what it does not judge or keep is put in."""
